import type { Path } from "../path.ts";
import { type Problem, problem, warningProblem } from "./problem.ts";

/** Bounds the errors and the warnings that are listed for one object, which can have hundreds of thousands. */
export const MAX_PROBLEMS = 32;

/** The problems of one object, as far as they are listed; the rest is counted. */
export class ProblemList {
  readonly #problems: Problem[] = [];
  readonly #listed = { error: 0, warning: 0 };
  readonly #omitted = { error: 0, warning: 0 };

  push(...problems: readonly Problem[]): void {
    for (const one of problems) {
      if (this.room(one.severity) === 0) this.#omitted[one.severity]++;
      else {
        this.#listed[one.severity]++;
        this.#problems.push(one);
      }
    }
  }

  /** How many more of a severity are listed. Skip building problems that will not be listed. */
  room(severity: Problem["severity"]): number {
    return MAX_PROBLEMS - this.#listed[severity];
  }

  /** Counts problems that were not created. */
  omit(severity: Problem["severity"], count: number): void {
    this.#omitted[severity] += count;
  }

  get hasErrors(): boolean {
    return this.#listed.error > 0;
  }

  /** In the order of discovery; each severity ends with the number of omitted ones, reported for `whole`. */
  all(whole: Path): Problem[] {
    const { error, warning } = this.#omitted;
    return [
      ...this.#problems,
      ...(error > 0 ? [problem(whole, `${numbered(error, "error")} not listed; correct these first`)] : []),
      ...(warning > 0 ? [warningProblem(whole, `${numbered(warning, "warning")} not listed`)] : []),
    ];
  }
}

function numbered(count: number, noun: string): string {
  return count === 1 ? `1 more ${noun} is` : `${count} more ${noun}s are`;
}
