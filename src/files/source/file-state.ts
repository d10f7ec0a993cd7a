import { locateAll } from "../reader/locate-problems.ts";
import type { Reader } from "../reader/reader.ts";
import type { Entry } from "./entry.ts";
import { type Candidate, difference, type FileVersion, mayReplace, number } from "./file-version.ts";
import {
  changeReport,
  contentOf,
  describeFileProblem,
  type FileProblem,
  type FileReport,
  problemReport,
} from "./report.ts";
import { type FileStat, recentlyModified } from "./tree.ts";
import { STABLE_MS } from "./watch.ts";

/** A file: the version that is served, and the problems of its current content. */
export interface FileState {
  readonly name: string;
  readonly path: string;
  /** How it looked when it was read. */
  readonly stat: FileStat;
  /** It changed a moment before and may change again without looking different: then it is to be read once more. */
  readonly fresh: boolean;
  readonly version: FileVersion | undefined;
  readonly problems: readonly FileProblem[];
}

/** What came of reading a file. */
export interface Attempt {
  readonly stat: FileStat;
  readonly before: FileState | undefined;
  readonly outcome: Candidate | { readonly unreadable: string };
}

/** What a file's reading leads to. Nothing of it is in force yet. */
export interface Step {
  readonly name: string;
  /** `undefined`: the file is gone. */
  readonly state: FileState | undefined;
  readonly removed: readonly Entry[];
  readonly added: readonly Entry[];
  readonly reports: readonly FileReport[];
}

/** Decides whether what was read replaces what is served, and what to report. */
export async function decide(
  attempt: Attempt,
  reader: Reader,
  shown: string,
  opening: boolean,
): Promise<Step> {
  const { stat, before, outcome } = attempt;
  const { name, path } = stat;
  const problems =
    "unreadable" in outcome
      ? [fileProblem(shown, outcome.unreadable)]
      : await locateAll(reader, path, shown, outcome);
  const faulty = problems.some(({ severity }) => severity === "error");
  const base = { name, path, stat, fresh: recentlyModified(stat, Date.now(), STABLE_MS), problems };
  // Said before and nothing new: files are read again also for other reasons than that they changed.
  const said = before !== undefined && sameProblems(before.problems, problems);
  const after = "unreadable" in outcome ? undefined : { documents: outcome.documents, faulty };
  if (after === undefined || "unreadable" in outcome || !mayReplace(before?.version, after, outcome)) {
    const reports = said ? [] : [problemReport(name, problems, stillServed(before?.version))];
    return { name, state: { ...base, version: before?.version }, removed: [], added: [], reports };
  }
  number(after);
  const { removed, added } = difference(before?.version, after);
  const reports: FileReport[] = [];
  if (problems.length > 0 && !said) {
    reports.push(problemReport(name, problems, faulty ? servedOf(after) : ""));
  }
  const change = opening ? undefined : changeReport(name, removed, added);
  if (change !== undefined) reports.push(change);
  else if (!faulty && before?.problems.some(({ severity }) => severity === "error")) {
    reports.push(recovered(name, after));
  }
  return { name, state: { ...base, version: after }, removed, added, reports };
}

/** A file that is gone takes its objects along. */
export function fileRemoved({ name, version }: FileState): Step {
  const { removed } = difference(version, undefined);
  const report = changeReport(name, removed, []);
  return { name, state: undefined, removed, added: [], reports: report === undefined ? [] : [report] };
}

export function fileProblem(file: string, message: string): FileProblem {
  return { file, line: 0, column: 0, message, severity: "error", frame: "" };
}

function sameProblems(a: readonly FileProblem[], b: readonly FileProblem[]): boolean {
  return a.length === b.length && a.every((one, i) => sameText(one, b[i]));
}

function sameText(a: FileProblem, b: FileProblem | undefined): boolean {
  return b !== undefined && describeFileProblem(a) === describeFileProblem(b);
}

/** What is served of a file with errors. */
function servedOf(version: FileVersion): string {
  const entries = version.documents.flatMap((document) => document.entries);
  const has = (wanted: Entry["invalid"]) => entries.some(({ invalid }) => invalid === wanted);
  const endings = [
    ...(has(undefined) || entries.length === 0
      ? [`the rest of this file is served (${contentOf(version)})`]
      : []),
    ...(has("pruned") ? ["policies with unknown fields count without these fields"] : []),
    ...(has("failing") ? ["invalid policies follow their failure mode"] : []),
  ];
  return endings.join("; ");
}

function stillServed(version: FileVersion | undefined): string {
  if (version === undefined) return "nothing of this file is served";
  return `still serving the last good version of this file (${contentOf(version)})`;
}

function recovered(file: string, version: FileVersion): FileReport {
  const text = `${file}: read again without problems (${contentOf(version)})`;
  return { level: "info", file, text, problems: [] };
}
