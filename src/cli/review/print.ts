import { printable } from "../output/printable.ts";
import { table } from "../output/table.ts";
import type { Terminal } from "../output/terminal.ts";
import { type ReviewResult, summaryOf } from "./result.ts";

/** The table of a review: one object a row, further changes on lines of their own. */
export function printTable(results: readonly ReviewResult[], { out, paint }: Terminal): void {
  const rows = results.flatMap(rowsOf);
  for (const [i, line] of table(HEADER, rows).entries()) {
    const [name = "", verdict = ""] = rows[i - 1] ?? [];
    const style = verdict === "deny" ? "red" : verdict === "patch" ? "green" : undefined;
    if (style === undefined) out(line);
    else {
      // Painted last, as colour has no width; the verdict is the first of its word behind the name.
      const start = line.indexOf(verdict, name.length);
      out(`${line.slice(0, start)}${paint(style, verdict)}${line.slice(start + verdict.length)}`);
    }
  }
}

const HEADER = ["OBJECT", "VERDICT", "CHANGES", "BY"];

function rowsOf(result: ReviewResult): string[][] {
  const name = objectName(result);
  if (result.verdict === "deny") {
    return result.violations.map((violation, i) => [
      i === 0 ? name : "",
      i === 0 ? "deny" : "",
      withCode(violation),
      violation.policy === "" ? violation.module : violation.policy,
    ]);
  }
  if (result.changes.length > 0) {
    return result.changes.map(({ message, policy, module }, i) => [
      i === 0 ? name : "",
      i === 0 ? "patch" : "",
      `+ ${printable(message)}`,
      policy === "" ? module : policy,
    ]);
  }
  if (result.patch.length === 0) return [[name, "allow", "-", "-"]];
  // No policy changed anything, so it is the note on earlier changes that was not true.
  return [[name, "patch", "! its note on what usher changed is corrected", "usher"]];
}

/** Why, and why not, for each object. */
export function printTrace(results: readonly ReviewResult[], { out, paint }: Terminal): void {
  for (const [i, result] of results.entries()) {
    if (i > 0) out("");
    const denied = result.verdict === "deny";
    const verdict = denied ? "deny" : result.patch.length > 0 ? "patch" : "allow";
    const painted = denied ? paint("red", verdict) : verdict === "patch" ? paint("green", verdict) : verdict;
    out(`${paint("bold", objectName(result))}  ${painted}`);
    if (result.untouched !== undefined) out(`  ${printable(result.untouched)}`);
    const trace = result.trace ?? [];
    const width = Math.max(0, ...trace.map(({ policy }) => policy.length));
    const verdicts = Math.max(0, ...trace.map(({ applies }) => applies.length));
    for (const { policy, applies, why, parts } of trace) {
      out(`  ${policy.padEnd(width)}  ${applies.padEnd(verdicts)}  ${printable(why)}`);
      for (const part of parts) out(`    ${printable(part)}`);
    }
    for (const violation of result.violations) out(`  ${paint("red", "refused")}: ${withCode(violation)}`);
  }
}

/** `3 objects: 1 as it is, 1 patched, 1 refused` */
export function summaryLine(results: readonly ReviewResult[]): string {
  const { allowed, denied, patched } = summaryOf(results);
  const count = results.length;
  const same = allowed - patched;
  return `${count} ${count === 1 ? "object" : "objects"}: ${same} as ${same === 1 ? "it is" : "they are"}, ${patched} patched, ${denied} refused`;
}

/** What the person can do next, where something was refused. */
export function nextStep(results: readonly ReviewResult[], name: string): string | undefined {
  const codes = [...new Set(results.flatMap(({ violations }) => violations.map(({ code }) => code)))];
  const [code] = codes.filter((one) => one !== "");
  return code === undefined ? undefined : `${name} help ${code} says what a refusal means and what to do`;
}

export function objectName({ object }: Pick<ReviewResult, "object">): string {
  const { kind, namespace, name } = object;
  return printable(`${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`);
}

function withCode({ message, code }: ReviewResult["violations"][number]): string {
  return `${printable(message)}${code === "" ? "" : ` (${code})`}`;
}
