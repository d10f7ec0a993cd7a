import { summaryOf } from "../../core/review/result.ts";
import type { Review } from "../../core/review/review.ts";
import type { Io } from "../io.ts";
import { printable, type Terminal } from "../output/terminal.ts";
import { yamlText } from "../output/yaml.ts";
import { emitText, emitted } from "./emit.ts";
import type { Manifest } from "./input.ts";
import { nextStep, objectName, printTable, printTrace, summaryLine } from "./print.ts";
import type { ProblemData } from "./problems.ts";
import type { Asked } from "./request.ts";

/** One object of a review, judged. */
export interface Judged {
  readonly asked: Asked;
  readonly judgement: Review;
  readonly manifest: Manifest;
}

interface ReportOptions {
  readonly output: "table" | "json" | "yaml";
  readonly trace: boolean;
  readonly emit: boolean;
  readonly problems: readonly ProblemData[];
}

/** Prints a review: the result on stdout, messages on stderr. */
export function report(judged: readonly Judged[], options: ReportOptions, screen: Terminal, io: Io): void {
  const results = judged.map(({ judgement }) => judgement.result);
  for (const name of new Set(results.flatMap(({ unknown }) => unknown))) {
    screen.note(
      `unknown: the source does not have ${printable(name)}; policies that need it follow their failure mode`,
    );
  }
  if (options.emit) {
    emit(judged, options.output === "json" ? "json" : "yaml", screen);
    return;
  }
  if (options.output !== "table") {
    const { problems } = options;
    const value = { results: judged.map(located), summary: summaryOf(results), problems };
    screen.out(options.output === "json" ? JSON.stringify(value, null, 2) : yamlText(value));
    return;
  }
  for (const result of results) {
    for (const text of result.warnings) screen.warn(`${objectName(result)}: ${printable(text)}`);
  }
  if (results.length === 0) return;
  if (options.trace) printTrace(results, screen);
  else printTable(results, screen);
  screen.out(`\n${summaryLine(results)}`);
  const next = nextStep(results, io.name);
  if (next !== undefined) screen.note(next);
}

/** The result with the place of its manifest. */
function located({ judgement: { result }, manifest: { place, line } }: Judged) {
  const { object, ...rest } = result;
  return { object, file: place.input.label, line: line(), ...rest };
}

function emit(judged: readonly Judged[], format: "yaml" | "json", screen: Terminal): void {
  const objects = judged.flatMap(({ asked: { written }, judgement: { result, evaluation } }) =>
    result.verdict === "deny" || written === undefined ? [] : [emitted(written, evaluation.draft.edits)],
  );
  if (objects.length > 0) screen.out(emitText(objects, format));
  for (const { asked, judgement } of judged) {
    const { result } = judgement;
    for (const { message, code } of result.violations) {
      const why = `${printable(message)}${code === "" ? "" : ` (${code})`}`;
      screen.complain(`skipped, denied: ${objectName(result)}: ${why}`);
    }
    if (asked.written === undefined) screen.note(`skipped, deleted: ${objectName(result)}`);
    for (const text of result.warnings) screen.warn(`${objectName(result)}: ${printable(text)}`);
  }
}
