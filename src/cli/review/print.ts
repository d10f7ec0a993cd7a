import { type ReviewResult, type ReviewViolation, SIGNS, summaryOf } from "../../core/review/result.ts";
import { tableRows } from "../output/table.ts";
import { printable, type Terminal } from "../output/terminal.ts";
import { hung } from "../wrap.ts";

/** One row per object, further changes on separate rows. */
export function printTable(
  results: readonly ReviewResult[],
  { out, paint, width }: Terminal,
  places?: readonly string[],
): void {
  const rows = results.flatMap((result, i) => {
    const place = places?.[i];
    if (place === undefined) return rowsOf(result);
    return rowsOf(result).map((row, j) => [...row, j === 0 ? place : ""]);
  });
  const columns = places === undefined ? HEADER : [...HEADER, "PLACE"];
  const [header = [], ...printed] = tableRows(columns, rows, width);
  for (const line of header) out(line);
  // The column of verdicts, aligned for any lengths of names.
  const start = (header[0] ?? "").indexOf(VERDICT);
  for (const [i, [first = "", ...more]] of printed.entries()) {
    const verdict = rows[i]?.[1] ?? "";
    const style = verdict === "deny" ? "red" : verdict === "patch" ? "green" : undefined;
    // Coloured last, as escape sequences have no width. A name that overflows its column moves the verdict; on a terminal it wraps.
    const from = width === undefined ? Math.max(start, overflow(rows[i]?.[0], start)) : start;
    const at = style === undefined ? -1 : first.indexOf(verdict, from);
    if (style === undefined || at < 0) out(first);
    else out(`${first.slice(0, at)}${paint(style, verdict)}${first.slice(at + verdict.length)}`);
    for (const line of more) out(line);
  }
}

function overflow(name = "", start: number): number {
  return name.length > start ? name.length : 0;
}

const VERDICT = "VERDICT";
const HEADER = ["OBJECT", VERDICT, "CHANGES", "BY"];

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
  const { podViolations = [] } = result;
  const refused = podViolations.map((violation) => [
    "",
    "",
    `! pods denied: ${withCode(violation)}`,
    violation.policy === "" ? violation.module : violation.policy,
  ]);
  if (result.changes.length > 0) {
    const changed = result.changes.map(({ change, message, policy, module }, i) => [
      i === 0 ? name : "",
      i === 0 ? "patch" : "",
      `${SIGNS[change]} ${printable(message)}`,
      policy === "" ? module : policy,
    ]);
    return [...changed, ...refused];
  }
  const [, , first = "-", by = "-"] = refused[0] ?? [];
  return [[name, "allow", first, by], ...refused.slice(1)];
}

/** For each object, why policies did or did not apply. */
export function printTrace(results: readonly ReviewResult[], { out, paint, width: columns }: Terminal): void {
  const say = (lead: string, text: string): void => {
    for (const line of hung(lead, text, columns)) out(line);
  };
  for (const [i, result] of results.entries()) {
    if (i > 0) out("");
    const { verdict } = result;
    const painted =
      verdict === "deny" ? paint("red", verdict) : verdict === "patch" ? paint("green", verdict) : verdict;
    out(`${paint("bold", objectName(result))}  ${painted}`);
    if (result.untouched !== undefined) say("  ", printable(result.untouched));
    const trace = result.trace ?? [];
    const names = trace.map(({ policy, rule }) => (rule === undefined ? policy : `${policy} ${rule}`));
    const width = Math.max(0, ...names.map((name) => name.length));
    const effects = trace.map(({ applies }) => (applies === "not" ? "no effect" : applies));
    const widest = Math.max(0, ...effects.map((effect) => effect.length));
    for (const [at, { why, parts }] of trace.entries()) {
      say(`  ${(names[at] ?? "").padEnd(width)}  ${(effects[at] ?? "").padEnd(widest)}  `, printable(why));
      for (const part of parts) {
        const [, sign = "", text = ""] = /^([+=!-] )?(.*)$/.exec(printable(part)) ?? [];
        say(`    ${sign}`, text);
      }
    }
    for (const [word, violations] of [
      ["denied", result.violations],
      ["pods denied", result.podViolations ?? []],
    ] as const)
      for (const violation of violations) {
        const [first = "", ...more] = hung(`  ${word}: `, withCode(violation), columns);
        // Coloured last, as escape sequences have no width.
        out(first.replace(word, paint("red", word)));
        for (const line of more) out(line);
      }
  }
}

/** `3 objects: 1 unchanged, 1 patched, 1 denied` */
export function summaryLine(results: readonly ReviewResult[]): string {
  const { unchanged, denied, patched } = summaryOf(results);
  const count = results.length;
  const podless = results.filter(({ podViolations = [] }) => podViolations.length > 0).length;
  const pods = podless === 0 ? "" : `, ${podless} without pods, which are denied`;
  return `${count} ${count === 1 ? "object" : "objects"}: ${unchanged} unchanged, ${patched} patched, ${denied} denied${pods}`;
}

/** The next step after a denial. */
export function nextStep(results: readonly ReviewResult[], name: string): string | undefined {
  const found = results.flatMap(({ violations, podViolations = [] }) => [...violations, ...podViolations]);
  const codes = [...new Set(found.map(({ code }) => code))];
  const [code] = codes.filter((one) => one !== "");
  return code === undefined ? undefined : `Run "${name} help ${code}" for an explanation.`;
}

export function objectName({ object }: Pick<ReviewResult, "object">): string {
  const { kind, namespace, name } = object;
  return printable(`${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`);
}

function withCode({ message, code }: ReviewViolation): string {
  return `${printable(message)}${code === "" ? "" : ` (${code})`}`;
}
