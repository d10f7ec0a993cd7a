import type { InputText } from "../../core/module/command.ts";
import { fieldPath } from "../../core/path.ts";
import { codeOf, describeProblem, PROBLEM, type Problem } from "../../core/policy/problem.ts";
import { type Located, locateProblems } from "../../files/reader/read-documents.ts";
import type { FileProblem } from "../../files/source/report.ts";
import { printable } from "../output/terminal.ts";
import type { InputProblem } from "./input.ts";

/** Per file; more would scroll the rest away. */
const SHOWN = 20;

/** A problem of the input or the source, as JSON has it. */
export interface ProblemData {
  readonly from: "input" | "source";
  readonly file: string;
  /** From one; absent where the file itself is the problem. */
  readonly line?: number;
  readonly column?: number;
  readonly severity: "error" | "warning";
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
  readonly object?: string;
}

interface Described {
  readonly data: ProblemData;
  /** As a compiler prints it: file, line, column, message, and the lines around. */
  readonly text: string;
}

/** Problems as a compiler prints them. */
export function describeProblems(problems: readonly InputProblem[]): string[] {
  const byInput = Map.groupBy(problems, (one) => inputOf(one) ?? one);
  return [...byInput.values()].flatMap((list) => {
    const lines = describeSome(list.slice(0, SHOWN)).map(({ text }) => text);
    const more = list.length - SHOWN;
    const [first] = list;
    const label = first === undefined ? "" : labelOf(first);
    return more > 0 ? [...lines, `${label}: and ${more} more problems`] : lines;
  });
}

/** Problems for programs. */
export function problemData(problems: readonly InputProblem[]): ProblemData[] {
  const byInput = Map.groupBy(problems, (one) => inputOf(one) ?? one);
  return [...byInput.values()].flatMap((list) => describeSome(list).map(({ data }) => data));
}

/** The problems of a source for programs; with `strict` some of its warnings are errors. */
export function sourceProblemData(problems: readonly FileProblem[], strict: boolean): ProblemData[] {
  return problems.map(({ file, line, column, message, hint, severity, code, strict: mistake, object }) => ({
    from: "source",
    file,
    ...(line === 0 ? {} : { line, column }),
    severity: strict && mistake ? "error" : severity,
    code,
    message,
    ...(hint === undefined ? {} : { hint }),
    ...(object === undefined ? {} : { object }),
  }));
}

/** Problems of one input; its text is parsed once for all of them. */
function describeSome(problems: readonly InputProblem[]): Described[] {
  const [first] = problems;
  const input = first === undefined ? undefined : inputOf(first);
  const wanted = problems.flatMap((one) => ("place" in one ? [one] : []));
  const places =
    input === undefined || wanted.length === 0
      ? []
      : locateProblems(
          input.text,
          wanted.map(({ place, problem }) => ({
            document: place.document,
            path: [...place.path, ...problem.path],
            message: problem.message,
            ...(problem.hint === undefined ? {} : { hint: problem.hint }),
          })),
        );
  return problems.map((one) => {
    const label = labelOf(one);
    if ("message" in one)
      return described(label, undefined, PROBLEM.unreadable, one.message, `${label}: ${one.message}`);
    if ("located" in one) {
      const { message } = one.located;
      return described(label, one.located, PROBLEM.unreadable, message, framed(label, one.located, message));
    }
    const place = places[wanted.indexOf(one)];
    const message = withField(one.problem);
    const text =
      place === undefined
        ? `${label}: ${printable(describeProblem(one.problem))}`
        : framed(label, place, message);
    return described(label, place, codeOf(one.problem), message, text);
  });
}

function described(
  file: string,
  place: Located | undefined,
  code: string,
  message: string,
  text: string,
): Described {
  const where = place === undefined ? {} : { line: place.line, column: place.column };
  const hint = place?.hint === undefined ? {} : { hint: place.hint };
  return { text, data: { from: "input", file, ...where, severity: "error", code, message, ...hint } };
}

function framed(label: string, { line, column, frame }: Located, message: string): string {
  return `${label}:${line}:${column}: ${printable(message)}\n${frame}`;
}

function withField({ path, message }: Problem): string {
  return path.length === 0 ? message : `${fieldPath(path)}: ${message}`;
}

function inputOf(one: InputProblem): InputText | undefined {
  if ("place" in one) return one.place.input;
  return "input" in one ? one.input : undefined;
}

function labelOf(one: InputProblem): string {
  return printable(inputOf(one)?.name ?? ("name" in one ? one.name : ""));
}
