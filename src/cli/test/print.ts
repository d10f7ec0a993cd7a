import type { Json, JsonObject } from "../../core/json.ts";
import { fieldPath } from "../../core/path.ts";
import { expectedObject, type Mismatch } from "../../core/suite/expectation.ts";
import { junitText } from "../output/junit.ts";
import { table } from "../output/table.ts";
import { printable, SILENT, type Terminal } from "../output/terminal.ts";
import { unifiedDiff } from "../output/unified-diff.ts";
import { versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { printTrace } from "../review/print.ts";
import { describeProblems, problemData } from "../review/problems.ts";
import { type MutantResult, type Mutation, scoreOf } from "./mutate.ts";
import type { CaseResult, SuiteResult } from "./run-suite.ts";

/** A suite with the results of its cases, and with `--mutate` of its mutants. */
export interface TestedSuite extends SuiteResult {
  readonly mutation?: Mutation;
}

export type TestFormat = "table" | "json" | "junit" | "markdown" | "github";

export interface PrintOptions {
  readonly output: TestFormat;
  readonly minScore: number;
}

type Status = "passed" | "failed" | "error";

function statusOf({ problems, mismatches }: CaseResult): Status {
  if (problems.length > 0) return "error";
  return mismatches.length > 0 ? "failed" : "passed";
}

/** Whether anything is an error: such suites prove nothing. */
export function hasErrors({ problems, cases, mutation }: TestedSuite): boolean {
  return (
    problems.length > 0 ||
    (mutation?.problems.length ?? 0) > 0 ||
    cases.some((one) => statusOf(one) === "error")
  );
}

export function hasFailures({ cases }: TestedSuite): boolean {
  return cases.some((one) => statusOf(one) === "failed");
}

/** Prints the results of suites; problems go to stderr in every format. */
export function printSuites(suites: readonly TestedSuite[], options: PrintOptions, screen: Terminal): void {
  const problems = suites.flatMap(({ problems: own, cases, mutation }) => [
    ...own,
    ...cases.flatMap((one) => one.problems),
    ...(mutation?.problems ?? []),
  ]);
  for (const text of describeProblems(problems)) screen.complain(text);
  PRINTERS[options.output](suites, screen, options);
}

const PRINTERS: Readonly<
  Record<TestFormat, (suites: readonly TestedSuite[], screen: Terminal, options: PrintOptions) => void>
> = {
  table: printTables,
  json: (suites, { out }) =>
    out(JSON.stringify(versioned("Test", reportOf(suites) as unknown as JsonObject), null, 2)),
  junit: (suites, { out }) => out(junitText(suites.map(junitSuite))),
  markdown: printMarkdown,
  github: printAnnotations,
};

function printTables(suites: readonly TestedSuite[], screen: Terminal, { minScore }: PrintOptions): void {
  const { out, width } = screen;
  const rows = suites.flatMap(({ file, cases }) =>
    cases.map((one) => [
      statusOf(one),
      one.decision?.verdict ?? "-",
      `${printable(file.input.label)}:${one.line}`,
      printable(one.one.name),
    ]),
  );
  if (rows.length > 0) for (const line of table(["RESULT", "VERDICT", "AT", "CASE"], rows, width)) out(line);
  for (const suite of suites)
    for (const one of suite.cases) if (statusOf(one) === "failed") printFailure(suite, one, screen);
  if (rows.length > 0) out(`\n${summaryOf(suites)}`);
  for (const { file, mutation } of suites) {
    if (mutation === undefined) continue;
    const missed = missedOf(mutation.mutants);
    const label = printable(file.input.label);
    if (missed.length > 0) {
      out(`\n${label}: no case notices`);
      for (const line of table(
        ["POLICY", "FIELD", "CHANGE", "AT"],
        missed.map((one) => [printable(one.policy), shownField(one), printable(one.change), placeOf(one)]),
        width,
      ))
        out(line);
    }
    out(`\n${label}: ${scoreLine(mutation.mutants, minScore)}`);
  }
}

function printFailure({ file }: TestedSuite, result: CaseResult, screen: Terminal): void {
  const { out, paint } = screen;
  out(
    `\n${paint("red", "FAILED")} ${paint("bold", printable(result.one.name))}  ${printable(file.input.label)}:${result.line}`,
  );
  for (const one of result.mismatches) out(`  ${describe(one)}`);
  for (const line of diffOf(result)) out(`  ${colored(line, paint)}`);
  if (result.result !== undefined)
    printTrace([result.result], { ...screen, out: (text) => out(`  ${text}`) });
}

function colored(line: string, paint: Terminal["paint"]): string {
  const text = printable(line);
  if (line.startsWith("-")) return paint("red", text);
  return line.startsWith("+") ? paint("green", text) : text;
}

/** The expected manifest beside the real one. */
function diffOf({ one, decision }: CaseResult): string[] {
  if (one.expect === undefined || decision === undefined) return [];
  const expected = expectedObject(one.expect, decision);
  const lines = unifiedDiff(
    expected === undefined ? "" : yamlText(expected),
    decision.object === undefined ? "" : yamlText(decision.object),
  );
  return lines.length === 0 ? [] : ["--- expected", "+++ result", ...lines];
}

function describe({ path, expected, real }: Mismatch): string {
  const [kind = "", name] = path;
  const field = name === undefined ? String(kind) : `${kind}: ${name}`;
  return printable(`${field}: expected ${shown(expected)}, got ${shown(real)}`);
}

/** Enough to recognize a value; the difference of manifests is shown below. */
const SHOWN = 400;

function shown(value: Json | undefined): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

function missedOf(mutants: readonly MutantResult[]): MutantResult[] {
  return mutants.filter(({ noticedBy, equivalent }) => noticedBy === undefined && equivalent === undefined);
}

function shownField({ path }: MutantResult): string {
  return path.length === 0 ? "-" : printable(fieldPath(path));
}

function placeOf({ file, line }: MutantResult): string {
  return file === "" ? "-" : `${printable(file)}:${line}`;
}

function scoreLine(mutants: readonly MutantResult[], minScore: number): string {
  const accepted = mutants.filter(({ equivalent }) => equivalent !== undefined).length;
  const counted = mutants.length - accepted;
  const missed = missedOf(mutants).length;
  const score = scoreOf(mutants);
  const shown = score === 1 ? "1" : (Math.floor(score * 1_000) / 1_000).toFixed(3);
  const least = score < minScore ? `, below ${minScore}` : "";
  return `score ${shown}${least}: cases notice ${counted - missed} of ${counted} mutants${accepted === 0 ? "" : `, ${accepted} equivalent`}`;
}

function summaryOf(suites: readonly TestedSuite[]): string {
  const cases = suites.flatMap((suite) => suite.cases);
  const count = (wanted: Status) => cases.filter((one) => statusOf(one) === wanted).length;
  const errors = count("error");
  return `${cases.length} ${cases.length === 1 ? "case" : "cases"}: ${count("passed")} passed, ${count("failed")} failed${errors === 0 ? "" : `, ${errors} with errors`}`;
}

function reportOf(suites: readonly TestedSuite[]) {
  const cases = suites.flatMap((suite) => suite.cases);
  const count = (wanted: Status) => cases.filter((one) => statusOf(one) === wanted).length;
  return {
    suites: suites.map(({ file, cases: own, problems, mutation }) => ({
      file: file.input.label,
      cases: own.map((one) => ({
        name: one.one.name,
        line: one.line,
        result: statusOf(one),
        ...(one.decision === undefined ? {} : { verdict: one.decision.verdict }),
        mismatches: one.mismatches.map(({ path, expected, real }) => ({
          path: fieldPath(path),
          ...(expected === undefined ? {} : { expected }),
          ...(real === undefined ? {} : { real }),
        })),
        ...(statusOf(one) === "failed"
          ? { diff: diffOf(one).join("\n"), trace: one.result?.trace ?? [] }
          : {}),
        problems: problemData(one.problems),
      })),
      problems: problemData([...problems, ...(mutation?.problems ?? [])]),
      ...(mutation === undefined
        ? {}
        : {
            score: scoreOf(mutation.mutants),
            mutants: mutation.mutants.map(({ path, ...one }) => ({ ...one, path: fieldPath(path) })),
          }),
    })),
    summary: {
      cases: cases.length,
      passed: count("passed"),
      failed: count("failed"),
      errors: count("error"),
    },
  };
}

function junitSuite({ file, cases, problems, mutation }: TestedSuite) {
  const label = file.input.label;
  const failed = (name: string, type: "failure" | "error", message: string, text: string) => ({
    name,
    seconds: 0,
    problem: { type, message, text },
  });
  return {
    name: label,
    file: label,
    cases: [
      ...cases.map((one) => {
        const status = statusOf(one);
        const base = { name: one.one.name, seconds: one.ms / 1_000 };
        if (status === "passed") return base;
        const lines = status === "error" ? describeProblems(one.problems) : one.mismatches.map(describe);
        return {
          ...base,
          problem: {
            type: status === "error" ? ("error" as const) : ("failure" as const),
            message: lines[0] ?? "",
            text: [...lines, ...diffOf(one), ...traceLines(one)].join("\n"),
          },
        };
      }),
      ...[...problems, ...(mutation?.problems ?? [])].map((one) => {
        const [text = ""] = describeProblems([one]);
        return failed(label, "error", text.split("\n")[0] ?? "", text);
      }),
      ...missedOf(mutation?.mutants ?? []).map((one) => {
        const name = `${one.policy} ${shownField(one)} ${one.change}`;
        return failed(name, "failure", "no case notices the mutant", placeOf(one));
      }),
    ],
  };
}

function traceLines({ result }: CaseResult): string[] {
  const lines: string[] = [];
  if (result !== undefined)
    printTrace([result], { ...SILENT, out: (text) => lines.push(text), paint: (_, text) => text });
  return lines;
}

function printMarkdown(suites: readonly TestedSuite[], { out }: Terminal, { minScore }: PrintOptions): void {
  out(`| case | result | verdict | at |\n| --- | --- | --- | --- |`);
  for (const { file, cases } of suites)
    for (const one of cases)
      out(
        `| ${cell(one.one.name)} | ${statusOf(one)} | ${one.decision?.verdict ?? "-"} | ${cell(`${file.input.label}:${one.line}`)} |`,
      );
  for (const { cases } of suites)
    for (const one of cases) {
      if (statusOf(one) !== "failed") continue;
      const lines = [...one.mismatches.map(describe), ...diffOf(one), ...traceLines(one)];
      out(`\n### ${cell(one.one.name)}\n\n\`\`\`\`diff\n${lines.join("\n")}\n\`\`\`\``);
    }
  out(`\n${summaryOf(suites)}`);
  for (const { file, mutation } of suites) {
    if (mutation === undefined) continue;
    out(`\n${cell(file.input.label)}: ${scoreLine(mutation.mutants, minScore)}`);
    const missed = missedOf(mutation.mutants);
    if (missed.length > 0) out("\n| no case notices | field | change | at |\n| --- | --- | --- | --- |");
    for (const one of missed)
      out(`| ${cell(one.policy)} | ${cell(shownField(one))} | ${cell(one.change)} | ${cell(placeOf(one))} |`);
  }
}

function cell(text: string): string {
  return printable(text).replaceAll("\\", "\\\\").replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

/** Workflow commands of GitHub Actions: annotations at the lines of cases, suites and policies. */
function printAnnotations(
  suites: readonly TestedSuite[],
  { out }: Terminal,
  { minScore }: PrintOptions,
): void {
  const note = (level: string, file: string, line: number, title: string, text: string) =>
    out(`::${level} file=${property(file)},line=${line},title=${property(title)}::${data(text)}`);
  for (const { file, cases, problems, mutation } of suites) {
    const label = file.input.label;
    for (const one of [
      ...problems,
      ...cases.flatMap((result) => result.problems),
      ...(mutation?.problems ?? []),
    ])
      for (const { file: where, line = 1, message } of problemData([one]))
        note("error", where, line, "usher test", message);
    for (const one of cases)
      if (statusOf(one) === "failed")
        note(
          "error",
          label,
          one.line,
          one.one.name,
          [...one.mismatches.map(describe), ...diffOf(one)].join("\n"),
        );
    for (const one of missedOf(mutation?.mutants ?? []))
      note(
        "warning",
        one.file,
        one.line,
        `${one.policy} ${shownField(one)}`,
        `no case of ${label} notices: ${one.change}`,
      );
    if (mutation !== undefined)
      out(`::notice file=${property(label)}::${data(scoreLine(mutation.mutants, minScore))}`);
  }
  out(summaryOf(suites));
}

function data(text: string): string {
  return text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
