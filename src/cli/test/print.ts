import type { Json, JsonObject } from "../../core/json.ts";
import type { ReportItem } from "../../core/module/command.ts";
import type { Code } from "../../core/module/module.ts";
import { fieldPath } from "../../core/path.ts";
import { expectedObject, type Mismatch } from "../../core/suite/expectation.ts";
import { SUITE } from "../../core/suite/suite.ts";
import { describeProblems, problemData } from "../input/problems.ts";
import type { ReviewFormat } from "../options.ts";
import { ITEM_PRINTERS } from "../output/formats.ts";
import { junitText } from "../output/junit.ts";
import { table } from "../output/table.ts";
import { printable, SILENT, type Terminal } from "../output/terminal.ts";
import { unifiedDiff } from "../output/unified-diff.ts";
import { versioned } from "../output/versioned.ts";
import { yamlText } from "../output/yaml.ts";
import { objectName, printTrace } from "../review/print.ts";
import { type MutantResult, type MutationResult, scoreOf } from "./mutate.ts";
import type { CaseResult, SuiteResult } from "./run-suite.ts";

/** A suite with the results of its cases, and with `--mutate` of its mutants. */
export interface TestedSuite extends SuiteResult {
  readonly mutation?: MutationResult;
}

export type TestFormat = Exclude<ReviewFormat, "name"> | "github";

export interface PrintOptions {
  readonly output: TestFormat;
  readonly minScore: number;
  /** Leaves out cases that pass, and mutants that a case notices. */
  readonly changedOnly: boolean;
  /** Explains the codes of problems. */
  readonly codes: readonly Code[];
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
  const shown = suites.map((suite) => ({
    ...suite,
    shown: options.changedOnly ? suite.cases.filter((one) => statusOf(one) !== "passed") : suite.cases,
  }));
  PRINTERS[options.output](shown, screen, options);
}

/** A suite with the cases to show; the summary counts all. */
interface ShownSuite extends TestedSuite {
  readonly shown: readonly CaseResult[];
}

const PRINTERS: Readonly<
  Record<TestFormat, (suites: readonly ShownSuite[], screen: Terminal, options: PrintOptions) => void>
> = {
  table: printTables,
  wide: printTables,
  json: (suites, { out }, options) => out(JSON.stringify(reportOf(suites, options), null, 2)),
  yaml: (suites, { out }, options) => out(yamlText(reportOf(suites, options))),
  junit: (suites, { out }) => out(junitText(suites.map(junitSuite))),
  sarif: (suites, { out }, { codes, minScore }) =>
    out(
      ITEM_PRINTERS.sarif(
        suites.flatMap((suite) => itemsOf(suite, minScore)),
        { command: "usher test", summary: summaryOf(suites), codes: [...codes, ...TEST_CODES] },
      ),
    ),
  markdown: printMarkdown,
  diff: (suites, { out }) => {
    for (const { file, cases } of suites)
      for (const one of cases) {
        if (statusOf(one) !== "failed") continue;
        const at = `${file.input.name}:${one.line}`;
        const [, , ...lines] = diffOf(one);
        if (lines.length > 0)
          for (const line of [`--- ${at} (expected)`, `+++ ${at} (result)`, ...lines]) out(printable(line));
      }
  },
  github: printAnnotations,
};

function printTables(
  suites: readonly ShownSuite[],
  screen: Terminal,
  { minScore, output }: PrintOptions,
): void {
  const { out, width } = screen;
  const wide = output === "wide";
  const rows = suites.flatMap(({ file, shown }) =>
    shown.map((one) => [
      statusOf(one),
      one.decision?.verdict ?? "-",
      ...(wide ? [one.result === undefined ? "-" : objectName(one.result)] : []),
      `${printable(file.input.name)}:${one.line}`,
      printable(one.one.name),
    ]),
  );
  const columns = ["RESULT", "VERDICT", ...(wide ? ["OBJECT"] : []), "AT", "CASE"];
  if (rows.length > 0) for (const line of table(columns, rows, width)) out(line);
  for (const suite of suites)
    for (const one of suite.cases) if (statusOf(one) === "failed") printFailure(suite, one, screen);
  if (suites.some(({ cases }) => cases.length > 0))
    out(`${rows.length === 0 ? "" : "\n"}${summaryOf(suites)}`);
  for (const { file, mutation } of suites) {
    if (mutation === undefined) continue;
    const missed = missedOf(mutation.mutants);
    const label = printable(file.input.name);
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
    `\n${paint("red", "FAILED")} ${paint("bold", printable(result.one.name))}  ${printable(file.input.name)}:${result.line}`,
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

function reportOf(suites: readonly ShownSuite[], { changedOnly }: PrintOptions): JsonObject {
  const cases = suites.flatMap((suite) => suite.cases);
  const count = (wanted: Status) => cases.filter((one) => statusOf(one) === wanted).length;
  const mutantsOf = ({ mutants }: MutationResult) => (changedOnly ? missedOf(mutants) : mutants);
  const data = {
    suites: suites.map(({ file, shown: listed, problems, mutation }) => ({
      file: file.input.name,
      cases: listed.map((one) => ({
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
            mutants: mutantsOf(mutation).map(({ path, ...one }) => ({ ...one, path: fieldPath(path) })),
          }),
    })),
    summary: {
      cases: cases.length,
      passed: count("passed"),
      failed: count("failed"),
      errors: count("error"),
    },
  };
  return versioned("Test", data as unknown as JsonObject);
}

/** Findings without a code of their own. */
const TEST_CODES: readonly Code[] = [
  {
    code: "failed-case",
    title: "A case does not hold",
    meaning: "The policies decide otherwise than the case expects.",
    remedy:
      "Correct the policy. Where the new decision is right, correct the expectation, or record it with usher test --update.",
  },
  {
    code: "unnoticed-mutant",
    title: "No case notices a weaker policy",
    meaning: "Every case of the suite still holds with this part of the policy removed or weakened.",
    remedy: "Add a case that the part decides, or say under equivalent why no case can.",
  },
];

/** Cases and mutants, for the formats of pipelines. */
function itemsOf({ file, shown: listed, problems, mutation }: ShownSuite, minScore: number): ReportItem[] {
  const label = file.input.name;
  const suite = { kind: SUITE.kind, name: label };
  const found = (list: CaseResult["problems"]) =>
    problemData(list).map(({ code, message, hint, file: where, line }) => ({
      level: "error" as const,
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
      at: { file: where, ...(line === undefined ? {} : { line }) },
    }));
  const isLow = mutation !== undefined && scoreOf(mutation.mutants) < minScore;
  return [
    { object: suite, verdict: "error", findings: found([...problems, ...(mutation?.problems ?? [])]) },
    ...listed.map((one) => ({
      object: { kind: "TestCase", name: one.one.name },
      verdict: statusOf(one),
      at: { file: label, line: one.line },
      findings: [
        ...found(one.problems),
        ...one.mismatches.map((mismatch) => ({
          level: "error" as const,
          code: "failed-case",
          message: describe(mismatch),
        })),
      ],
    })),
    ...missedOf(mutation?.mutants ?? []).map((one) => ({
      object: suite,
      verdict: "unnoticed",
      ...(one.file === "" ? {} : { at: { file: one.file, line: one.line } }),
      findings: [
        {
          level: isLow ? ("error" as const) : ("note" as const),
          code: "unnoticed-mutant",
          message: `no case notices: ${one.policy} ${shownField(one)} ${one.change}`,
        },
      ],
    })),
  ];
}

function junitSuite({ file, shown: listed, problems, mutation }: ShownSuite) {
  const label = file.input.name;
  const failed = (name: string, type: "failure" | "error", message: string, text: string) => ({
    name,
    seconds: 0,
    problem: { type, message, text },
  });
  return {
    name: label,
    file: label,
    cases: [
      ...listed.map((one) => {
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

function printMarkdown(suites: readonly ShownSuite[], { out }: Terminal, { minScore }: PrintOptions): void {
  out(`| case | result | verdict | at |\n| --- | --- | --- | --- |`);
  for (const { file, shown: listed } of suites)
    for (const one of listed)
      out(
        `| ${cell(one.one.name)} | ${statusOf(one)} | ${one.decision?.verdict ?? "-"} | ${cell(`${file.input.name}:${one.line}`)} |`,
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
    out(`\n${cell(file.input.name)}: ${scoreLine(mutation.mutants, minScore)}`);
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
    const label = file.input.name;
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
