import { table } from "../table.ts";
import type { Terminal } from "../terminal.ts";
import { type ReviewResult, summaryOf } from "./result.ts";

/** The table of a review: one object a row, further changes on lines of their own. */
export function printTable(results: readonly ReviewResult[], { out, paint }: Terminal): void {
  const rows = results.flatMap(rowsOf);
  const text = table(["OBJECT", "VERDICT", "CHANGES", "BY"], rows);
  out(
    text.replace(
      /^(\S.*?\s)(deny|patch)(?=\s)/gm,
      (_, before: string, verdict: string) =>
        `${before}${paint(verdict === "deny" ? "red" : "green", verdict)}`,
    ),
  );
}

function rowsOf(result: ReviewResult): string[][] {
  const name = objectName(result);
  if (result.verdict === "deny") {
    return result.violations.map(({ message, policy, module }, i) => [
      i === 0 ? name : "",
      i === 0 ? "deny" : "",
      oneLine(message),
      policy === "" ? module : policy,
    ]);
  }
  if (result.changes.length === 0) return [[name, result.patch.length > 0 ? "patch" : "allow", "-", "-"]];
  return result.changes.map(({ message, policy, module }, i) => [
    i === 0 ? name : "",
    i === 0 ? "patch" : "",
    `+ ${message}`,
    policy === "" ? module : policy,
  ]);
}

/** Why, and why not, for each object. */
export function printTrace(results: readonly ReviewResult[], { out, paint }: Terminal): void {
  for (const [i, result] of results.entries()) {
    if (i > 0) out("");
    const verdict =
      result.verdict === "deny" ? paint("red", "deny") : result.patch.length > 0 ? "patch" : "allow";
    out(`${paint("bold", objectName(result))}  ${verdict}`);
    const trace = result.trace ?? [];
    if (trace.length === 0) out("  no policy was asked: no hook wants this object");
    const width = Math.max(0, ...trace.map(({ policy }) => policy.length));
    const verdicts = Math.max(0, ...trace.map(({ applies }) => applies.length));
    for (const { policy, applies, why, parts } of trace) {
      out(`  ${policy.padEnd(width)}  ${applies.padEnd(verdicts)}  ${why}`);
      for (const part of parts) out(`    ${part}`);
    }
    for (const { message, code } of result.violations)
      out(`  ${paint("red", "refused")}: ${oneLine(message)} ${code}`);
  }
}

/** `3 objects: 1 as it is, 1 patched, 1 refused` */
export function summaryLine(results: readonly ReviewResult[]): string {
  const { allowed, denied, patched } = summaryOf(results);
  const count = results.length;
  return `${count} ${count === 1 ? "object" : "objects"}: ${allowed - patched} as ${allowed - patched === 1 ? "it is" : "they are"}, ${patched} patched, ${denied} refused`;
}

function objectName({ object }: ReviewResult): string {
  return `${object.kind} ${object.namespace === "" ? "" : `${object.namespace}/`}${object.name}`;
}

function oneLine(text: string): string {
  return text.replaceAll("\n", " ");
}
