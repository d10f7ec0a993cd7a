// Repeats the same decision while the connection below the view is being broken, and records wrong decisions.

import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import type { Source } from "../../src/core/evaluate/source.ts";
import { atOnce, callOf } from "../builders/evaluation.ts";
import { outside } from "../builders/outside.ts";
import { requestFor } from "../builders/request.ts";

const EVERY_MS = 5;

/** The states of a policy over time, in this order and never back; `undefined`: not seen. */
export type Courses = Readonly<Record<string, readonly (string | undefined)[]>>;

export class ConsistencyCheck implements Disposable {
  readonly #source: Source;
  readonly #courses: Courses;
  readonly #reached = new Map<string, number>();
  readonly #timer: NodeJS.Timeout;
  readonly #wrong = new Set<string>();
  #decisions = 0;

  constructor(source: Source, courses: Courses) {
    this.#source = source;
    this.#courses = courses;
    this.#timer = setInterval(() => this.#decide(), EVERY_MS);
  }

  get decisions(): number {
    return this.#decisions;
  }

  /** Decisions that were wrong. */
  get wrong(): readonly string[] {
    return [...this.#wrong];
  }

  /** Whether every policy has reached its final state. */
  get done(): boolean {
    return Object.entries(this.#courses).every(
      ([name, course]) => this.#reached.get(name) === course.length - 1,
    );
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #decide(): void {
    this.#decisions += 1;
    if (!this.#source.ready) this.#wrong.add("not ready any more");
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "asked", namespace: "default" } };
    const call = callOf(this.#source.assembly, requestFor(object), { phase: "validate" });
    const { findings } = atOnce(evaluate(call, outside()));
    const words = new Map(findings.map(({ message }) => message.split(": ") as [string, string]));
    for (const [name, course] of Object.entries(this.#courses)) {
      const word = words.get(name);
      const before = this.#reached.get(name) ?? 0;
      const now = course.indexOf(word, before);
      if (now < 0) this.#wrong.add(`${name} was decided by ${word} after ${course[before]}`);
      else this.#reached.set(name, now);
    }
  }
}
