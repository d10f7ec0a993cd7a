import type { JsonObject } from "../../core/json.ts";
import type { ReportItem } from "../../core/module/command.ts";
import type { Code } from "../../core/module/module.ts";
import { SIGNS, summaryOf } from "../../core/review/result.ts";
import type { Review } from "../../core/review/review.ts";
import type { Manifest } from "../input/input.ts";
import type { ProblemData } from "../input/problems.ts";
import type { Io } from "../io.ts";
import type { ReviewFormat } from "../options.ts";
import { ITEM_PRINTERS, isChanged } from "../output/formats.ts";
import { printable, type Terminal } from "../output/terminal.ts";
import { unifiedDiff } from "../output/unified-diff.ts";
import { versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { emitText, emitted } from "./emit.ts";
import { nextStep, objectName, printTable, printTrace, summaryLine } from "./print.ts";
import type { Asked } from "./request.ts";

/** One evaluated object of a review. */
export interface Judged {
  readonly asked: Asked;
  readonly judgement: Review;
  readonly manifest: Manifest;
}

interface ReportOptions {
  readonly output: ReviewFormat;
  /** Leaves out what is allowed unchanged and without warnings. */
  readonly changedOnly: boolean;
  readonly codes: readonly Code[];
  readonly trace: boolean;
  readonly emit: boolean;
  readonly problems: readonly ProblemData[];
}

/** Prints a review: the result on stdout, messages on stderr. */
export function report(all: readonly Judged[], options: ReportOptions, screen: Terminal, io: Io): void {
  const { output } = options;
  const judged = options.changedOnly ? all.filter((one) => isChanged(itemOf(one))) : all;
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
  if (output === "json" || output === "yaml") {
    const { problems } = options;
    const summary = summaryOf(all.map(({ judgement }) => judgement.result));
    const data = { results: judged.map(located), summary, problems } as unknown as JsonObject;
    const value = versioned("Review", data);
    screen.out(output === "json" ? JSON.stringify(value, null, 2) : yamlText(value));
    return;
  }
  if (output === "diff") {
    for (const one of judged) for (const line of diffOf(one)) screen.out(printable(line));
    return;
  }
  if (output !== "table" && output !== "wide") {
    const summary = summaryLine(all.map(({ judgement }) => judgement.result));
    const context = { command: "usher review", summary, codes: [...options.codes, ...REVIEW_CODES] };
    const text = ITEM_PRINTERS[output](judged.map(itemOf), context);
    if (text !== "") screen.out(text);
    return;
  }
  for (const result of results) {
    for (const text of result.warnings) screen.warn(`${objectName(result)}: ${printable(text)}`);
  }
  if (results.length === 0) return;
  if (options.trace) printTrace(results, screen);
  else if (output === "wide") printTable(results, screen, judged.map(placeOf));
  else printTable(results, screen);
  screen.out(`\n${summaryLine(all.map(({ judgement }) => judgement.result))}`);
  const next = nextStep(results, io.name);
  if (next !== undefined) screen.note(next);
}

/** Findings without a code of a module. */
const REVIEW_CODES: readonly Code[] = [
  {
    code: "patch",
    title: "Usher changes the object",
    meaning: "The object is admitted with this change.",
    remedy:
      "Nothing. `usher review --emit` prints the manifest with the changes, --trace the policy that asks for each.",
  },
  {
    code: "denied",
    title: "Usher denies the object",
    meaning:
      "The API server refuses the object, because the webhook denies it for the reason in the message.",
    remedy: "Change the object as the message says; --trace shows the policy that decides.",
  },
  {
    code: "warning",
    title: "Usher admits the object with a warning",
    meaning: "kubectl shows this warning to the author of the request.",
    remedy: "Change the object as the message says where the warning is not expected.",
  },
];

/** `pods/etcd.yaml:3` */
function placeOf({ manifest: { place, line } }: Judged): string {
  return printable(`${place.input.name}:${line()}`);
}

/** Denials are errors, changes notes. */
function itemOf({ judgement: { result }, manifest: { place, line } }: Judged): ReportItem {
  const { object, verdict, violations, podViolations = [], warnings, changes } = result;
  const denied = [
    ...violations.map((one) => ({ one, text: one.message })),
    ...podViolations.map((one) => ({ one, text: `pods denied: ${one.message}` })),
  ];
  return {
    object,
    verdict,
    at: { file: place.input.name, line: line() },
    findings: [
      ...denied.map(({ one: { code, policy, module }, text }) => ({
        level: "error" as const,
        code: code === "" ? "denied" : code,
        message: text,
        by: policy === "" ? module : policy,
      })),
      ...warnings.map((message) => ({
        level: "warning" as const,
        code: /\((USHER-[A-Z]\d+)\)$/.exec(message)?.[1] ?? "warning",
        message: message.replace(/ \(USHER-[A-Z]\d+\)$/, ""),
      })),
      ...changes.map(({ change, message, policy, module }) => ({
        level: "note" as const,
        code: "patch",
        message: `${SIGNS[change]} ${message}`,
        by: policy === "" ? module : policy,
      })),
    ],
  };
}

/** The manifest without and with usher's changes. */
function diffOf({ asked: { written }, judgement: { result, evaluation } }: Judged): string[] {
  if (written === undefined || result.changes.length === 0) return [];
  const after = emitted(written, evaluation.draft.edits);
  const lines = unifiedDiff(yamlText(written), yamlText(after));
  return lines.length === 0
    ? []
    : [`--- ${objectName(result)}`, `+++ ${objectName(result)} (usher)`, ...lines];
}

/** The result with the place of its manifest. */
function located({ judgement: { result }, manifest: { place, line } }: Judged) {
  const { object, ...rest } = result;
  return { object, file: place.input.name, line: line(), ...rest };
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
