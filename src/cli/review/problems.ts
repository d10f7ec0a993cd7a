import { fieldPath } from "../../core/path.ts";
import { describeProblem, type Problem } from "../../core/policy/problem.ts";
import { type Located, locateProblems } from "../../files/reader/read-documents.ts";
import { printable } from "../output/printable.ts";
import type { InputProblem, InputText } from "./input.ts";

/** Per file; more would scroll the rest away. */
const SHOWN = 20;

/** Problems as a compiler prints them: file, line, column, message, and the lines around. */
export function describeProblems(problems: readonly InputProblem[]): string[] {
  const byInput = Map.groupBy(problems, (one) => inputOf(one) ?? one);
  return [...byInput.values()].flatMap((list) => {
    const lines = describeSome(list.slice(0, SHOWN));
    const more = list.length - SHOWN;
    const [first] = list;
    const label = first === undefined ? "" : labelOf(first);
    return more > 0 ? [...lines, `${label}: and ${more} more problems`] : lines;
  });
}

/** Problems of one input; its text is parsed once for all of them. */
function describeSome(problems: readonly InputProblem[]): string[] {
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
    if ("message" in one) return `${label}: ${one.message}`;
    if ("located" in one) return framed(label, one.located, one.located.message);
    const place = places[wanted.indexOf(one)];
    return place === undefined
      ? `${label}: ${printable(describeProblem(one.problem))}`
      : framed(label, place, withField(one.problem));
  });
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
  return printable(inputOf(one)?.label ?? ("label" in one ? one.label : ""));
}
