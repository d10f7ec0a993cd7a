import type { Json } from "../../core/json.ts";
import type { CommandWrites, PlannedChange } from "../../core/module/command.ts";
import type { Terminal } from "../output/terminal.ts";
import { printData, printTable } from "./print-report.ts";
import type { WriteAttempt } from "./write.ts";

const WOULD_CHANGE = "would change";

/** The result of one object; the JSON output is exactly this. */
export interface WriteResult {
  readonly object: { readonly kind: string; readonly namespace?: string; readonly name: string };
  /** Or the command's own word for a written object. */
  readonly result: typeof WOULD_CHANGE | "unchanged" | "failed" | string;
  readonly changes: readonly string[];
  readonly warnings?: readonly string[];
  readonly why?: string;
}

export function writeResult(
  { kind, of }: PlannedChange,
  attempt: WriteAttempt,
  done = WOULD_CHANGE,
): WriteResult {
  const { namespace, name } = of;
  const object = { kind, ...(namespace === undefined ? {} : { namespace }), name };
  if ("failed" in attempt) return { object, result: "failed", changes: [], why: attempt.failed };
  const { changes, warnings } = attempt;
  const warned = warnings.length === 0 ? {} : { warnings };
  return { object, result: changes.length === 0 ? "unchanged" : done, changes, ...warned };
}

/** `Deployment shop/web` */
export function objectName({ kind, namespace, name }: WriteResult["object"]): string {
  return `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
}

export function printTableOf(
  results: readonly WriteResult[],
  { noun }: CommandWrites,
  screen: Terminal,
): void {
  if (results.length === 0) return;
  const rows = results.flatMap(({ object, result, changes, why }) =>
    (changes.length === 0 ? [why ?? "-"] : changes).map((text, i) => [
      i === 0 ? objectName(object) : "",
      i === 0 ? result : "",
      text,
    ]),
  );
  printTable([noun.toUpperCase(), "RESULT", "CHANGES"], rows, screen);
  screen.out("");
}

export function printResults(
  results: readonly WriteResult[],
  writes: CommandWrites,
  format: "json" | "yaml",
  screen: Terminal,
): void {
  printData(
    "usher writes",
    { results, summary: countsOf(results, writes) } as unknown as Json,
    format,
    screen,
  );
}

function countsOf(results: readonly WriteResult[], { done }: CommandWrites) {
  const count = (wanted: string) => results.filter(({ result }) => result === wanted).length;
  return {
    [done]: count(done),
    wouldChange: count(WOULD_CHANGE),
    unchanged: count("unchanged"),
    failed: count("failed"),
  };
}

/** `3 workloads: 2 renewed, 1 failed` */
export function summaryOf(results: readonly WriteResult[], writes: CommandWrites): string {
  const { noun, done } = writes;
  if (results.length === 0) return `no ${noun}s to change`;
  const { wouldChange = 0, unchanged = 0, failed = 0, [done]: written = 0 } = countsOf(results, writes);
  const parts = [
    wouldChange > 0 ? `${wouldChange} would change` : `${written} ${done}`,
    ...(unchanged > 0 ? [`${unchanged} unchanged`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ];
  return `${results.length} ${noun}${results.length === 1 ? "" : "s"}: ${parts.join(", ")}`;
}
