import { writeFile } from "node:fs/promises";
import { Document, isMap, parseDocument } from "yaml";
import { expectationOf, mismatches, type ObservedDecision } from "../../core/suite/expectation.ts";
import type { Expectation } from "../../core/suite/suite.ts";
import { cutDocuments } from "../../files/text/documents.ts";
import type { Terminal } from "../output/terminal.ts";
import { unifiedDiff } from "../output/unified-diff.ts";
import { yamlText } from "../output/yaml.ts";
import type { CaseResult, SuiteResult } from "./run-suite.ts";

/** Every scalar is a string as written, as kubectl will read it. */
const AS_WRITTEN = { schema: "failsafe", version: "1.1" } as const;

/** A range of a text and its replacement. */
interface Splice {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Writes the results of cases into the files of their suites, and prints the changes. Returns the cases that it can't record. */
export async function update(results: readonly SuiteResult[], screen: Terminal): Promise<readonly string[]> {
  const left: string[] = [];
  for (const [path, suites] of Map.groupBy(results, ({ file }) => file.path)) {
    const { text, name: label } = (suites[0] as SuiteResult).file.input;
    const { chunks } = cutDocuments(text);
    const splices: Splice[] = [];
    for (const { file, cases } of suites) {
      const chunk = chunks[file.document];
      if (chunk === undefined) continue;
      const document = parseDocument(chunk.text, AS_WRITTEN);
      for (const result of cases) {
        const { one, decision, problems } = result;
        const next = decision === undefined || problems.length > 0 ? undefined : recorded(result, decision);
        if (next === undefined) continue;
        const splice = one.fromTable ? undefined : spliceOf(document, one.index, next, chunk.text);
        // The rows of a table share one expectation.
        if (splice === undefined) left.push(`${label}:${result.line}: ${one.name}`);
        else splices.push({ ...splice, start: splice.start + chunk.offset, end: splice.end + chunk.offset });
      }
    }
    let after = text;
    // From the end, so that the offsets before it stay.
    for (const { start, end, text: part } of splices.sort((one, other) => other.start - one.start))
      after = `${after.slice(0, start)}${part}${after.slice(end)}`;
    if (after === text) continue;
    await writeFile(path, after);
    screen.out(`--- ${label}\n+++ ${label}\n${unifiedDiff(text, after).join("\n")}`);
  }
  return left;
}

/** The parts of an expectation that differ from the decision, with its values; all of it if there was none. */
function recorded(
  { one: { expect }, mismatches: wrong }: CaseResult,
  real: ObservedDecision,
): Expectation | undefined {
  const whole = expectationOf(real);
  if (expect === undefined) return whole;
  if (wrong.length === 0) return undefined;
  if (expect.verdict !== real.verdict) return whole;
  const next: Record<string, unknown> = { ...expect };
  for (const [part] of wrong.map(({ path }) => path)) {
    const name = String(part) as keyof Expectation;
    const value = name === "object" ? real.object : (whole[name] ?? ([] as unknown));
    if (name === "untouched" || (name === "fields" && whole.fields === undefined)) delete next[name];
    else if (name === "removed" && whole.removed === undefined) delete next[name];
    else if (name === "pods") next[name] = real.pods;
    else next[name] = value;
  }
  if (wrong.some(({ path }) => path[0] === "untouched"))
    Object.assign(next, { fields: whole.fields ?? next["fields"] });
  // An update that the decision does not meet would fail again immediately.
  return mismatches(next as Expectation, real).length === 0 ? (next as Expectation) : whole;
}

/** The text of an expectation in place of the previous one: everything around it stays, and comments of unchanged fields. */
function spliceOf(document: Document, index: number, next: Expectation, text: string): Splice | undefined {
  const written = document.getIn(["cases", index]);
  if (!isMap(written)) return undefined;
  const before = written.get("expect");
  const isReplaced = isMap(before);
  if (isReplaced) {
    const old = before.toJSON() as Record<string, unknown>;
    for (const key of Object.keys(old)) if (!Object.hasOwn(next, key)) before.delete(key);
    for (const [key, value] of Object.entries(next)) {
      const node = nodeOf(value);
      if (JSON.stringify(old[key]) !== JSON.stringify(node)) before.set(key, node);
    }
  } else written.set("expect", nodeOf(next));
  const isFlow = written.flow === true;
  const node = isReplaced ? before : written;
  const [start = 0, valueEnd = 0] = node.range ?? [];
  const end = start + text.slice(start, valueEnd).trimEnd().length;
  const indent = " ".repeat(start - (text.lastIndexOf("\n", start - 1) + 1));
  if (isReplaced || isFlow) {
    return { start, end, text: rendering(node).split("\n").join(`\n${indent}`) };
  }
  const added = yamlText({ expect: next }).split("\n").join(`\n${indent}`);
  return { start: end, end, text: `\n${indent}${added}` };
}

function rendering(node: Document["contents"]): string {
  const document = new Document(undefined, AS_WRITTEN);
  document.contents = node;
  return document.toString({ lineWidth: 0 }).trimEnd();
}

/** As usher writes YAML everywhere: kubectl reads the same value. */
function nodeOf(value: unknown): Document["contents"] {
  return parseDocument(yamlText(value), AS_WRITTEN).contents;
}
