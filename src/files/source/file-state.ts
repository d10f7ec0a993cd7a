import { equal } from "../../core/json.ts";
import { fieldPath } from "../../core/path.ts";
import { codeOf, PROBLEM } from "../../core/policy/problem.ts";
import type { TimeSlices } from "../../core/time-slices.ts";
import { locateProblems } from "../reader/read-documents.ts";
import type { Candidate } from "./candidate.ts";
import { describeObject, type Entry, entryKey, writtenPath } from "./entry.ts";
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

/** The served version of a file. */
export interface FileVersion {
  readonly entries: readonly Entry[];
  /** True if a part of the file had to be left out. */
  readonly faulty: boolean;
}

/** A file: the served version, and the problems of its current content. */
export interface FileState {
  readonly name: string;
  readonly path: string;
  /** Its metadata when it was read. */
  readonly stat: FileStat;
  /** It changed a moment before and may change again with equal metadata: then it must be read again. */
  readonly fresh: boolean;
  readonly version: FileVersion | undefined;
  readonly problems: readonly FileProblem[];
}

/** The result of reading a file. */
export interface Attempt {
  readonly stat: FileStat;
  readonly before: FileState | undefined;
  readonly outcome: Candidate | { readonly unreadable: string };
}

/** The consequence of reading a file, not in force yet. */
export interface Step {
  readonly name: string;
  /** `undefined`: the file is gone. */
  readonly state: FileState | undefined;
  readonly removed: readonly Entry[];
  readonly added: readonly Entry[];
  readonly reports: readonly FileReport[];
}

/** Decides whether the content replaces the served version, and what to report. */
export async function decide(
  { stat, before, outcome }: Attempt,
  shown: string,
  opening: boolean,
  slices: TimeSlices,
): Promise<Step> {
  const { name, path } = stat;
  const served = before?.version;
  const problems =
    "unreadable" in outcome ? [fileProblem(shown, outcome.unreadable)] : problemsIn(outcome, shown);
  const faulty = problems.some(({ severity }) => severity === "error");
  const base = { name, path, stat, fresh: recentlyModified(stat, Date.now(), STABLE_MS), problems };
  // Already reported: files are read again for reasons other than changes, too.
  const said = before !== undefined && sameProblems(before.problems, problems);
  if ("unreadable" in outcome || (faulty && !mayReplace(served, outcome))) {
    const reports = said ? [] : [problemReport(name, problems, stillServed(served))];
    return { name, state: { ...base, version: served }, removed: [], added: [], reports };
  }
  const { entries, removed, added } = await difference(served?.entries ?? [], outcome.entries, slices);
  const after = { entries, faulty };
  const reports: FileReport[] = [];
  if (problems.length > 0 && !said) {
    reports.push(problemReport(name, problems, faulty ? servedOf(after) : ""));
  }
  const change = opening ? undefined : changeReport(name, removed, added);
  if (change !== undefined) reports.push(change);
  else if (!faulty && before?.problems.some(({ severity }) => severity === "error")) {
    const text = `${name}: read again without problems (${contentOf(entries)})`;
    reports.push({ level: "info", file: name, text, problems: [] });
  }
  return { name, state: { ...base, version: after }, removed, added, reports };
}

/** A deleted file removes its objects. */
export function fileRemoved({ name, version }: FileState): Step {
  const removed = version?.entries ?? [];
  const report = changeReport(name, removed, []);
  return { name, state: undefined, removed, added: [], reports: report === undefined ? [] : [report] };
}

export function fileProblem(file: string, message: string): FileProblem {
  return { file, line: 0, column: 0, message, severity: "error", frame: "", code: PROBLEM.unreadable };
}

/** All problems of a file with their positions, in the order of the text. */
export function problemsIn({ text, located, pending }: Candidate, file: string): FileProblem[] {
  const wanted = pending.map(({ entry, problem: { path, message, hint } }) => ({
    document: entry.place.document,
    path: [...entry.place.path, ...writtenPath(entry, path)],
    message,
    ...(hint === undefined ? {} : { hint }),
  }));
  const places = locateProblems(text, wanted);
  const problems = pending.map(({ entry, problem }, i): FileProblem => {
    const { line = 0, column = 0, frame = "", hint = problem.hint } = places[i] ?? {};
    const field = fieldPath(writtenPath(entry, problem.path));
    return {
      file,
      line,
      column,
      message: field === "" ? problem.message : `${field}: ${problem.message}`,
      severity: problem.severity,
      code: codeOf(problem),
      ...(problem.strict ? { strict: true } : {}),
      frame,
      ...(hint === undefined ? {} : { hint }),
      ...(entry.object === undefined ? {} : { object: describeObject(entry.object) }),
    };
  });
  const ofText = located.map(
    (one): FileProblem => ({ ...one, file, severity: "error", code: PROBLEM.unreadable }),
  );
  return [...ofText, ...problems].sort((a, b) => a.line - b.line || a.column - b.column);
}

/**
 * The entries that a new version removes and adds. An unchanged entry stays and gets its new position: the first
 * definition of an object is compared with its previous first one, the second with the second.
 */
async function difference(
  before: readonly Entry[],
  after: readonly Entry[],
  slices: TimeSlices,
): Promise<{ readonly entries: Entry[]; readonly removed: Entry[]; readonly added: Entry[] }> {
  const old = Map.groupBy(before, entryKey);
  const entries: Entry[] = [];
  const removed: Entry[] = [];
  const added: Entry[] = [];
  for (const entry of after) {
    const known = old.get(entryKey(entry))?.shift();
    if (known !== undefined && known.invalid === entry.invalid && equal(known.object, entry.object)) {
      known.place = entry.place;
      entries.push(known);
    } else {
      if (known !== undefined) removed.push(known);
      added.push(entry);
      entries.push(entry);
    }
    await slices.next();
  }
  return { entries, removed: [...removed, ...[...old.values()].flat()], added };
}

/**
 * Whether an invalid new version may replace the served one. A file that was valid stays complete: one typo must not
 * remove a policy. If the served version had already left something out, the usable part is used, unless an object
 * would be lost to an error.
 */
function mayReplace(before: FileVersion | undefined, { entries, located, pending }: Candidate): boolean {
  if (before === undefined) return true;
  if (!before.faulty) return false;
  const kept = new Set(entries.map(entryKey));
  const invalid = new Set(entries.filter((one) => one.invalid).map(entryKey));
  const broken = new Set(
    pending.map(({ entry }) => (entry.object === undefined ? undefined : entryKey(entry))),
  );
  return before.entries.every((entry) => {
    const key = entryKey(entry);
    if (!entry.invalid && invalid.has(key)) return false;
    return kept.has(key) || (located.length === 0 && !broken.has(key) && !broken.has(undefined));
  });
}

function sameProblems(a: readonly FileProblem[], b: readonly FileProblem[]): boolean {
  const texts = b.map(describeFileProblem);
  return a.length === b.length && a.every((one, i) => describeFileProblem(one) === texts[i]);
}

/** The served part of a file with errors. */
function servedOf({ entries }: FileVersion): string {
  const has = (wanted: Entry["invalid"]) => entries.some(({ invalid }) => invalid === wanted);
  const endings = [
    ...(has(undefined) || entries.length === 0
      ? [`the rest of this file is served (${contentOf(entries)})`]
      : []),
    ...(has("pruned") ? ["policies with unknown fields count without these fields"] : []),
    ...(has("failing") ? ["invalid policies follow their failure mode"] : []),
  ];
  return endings.join("; ");
}

function stillServed(version: FileVersion | undefined): string {
  if (version === undefined) return "nothing of this file is served";
  return `still serving the last good version of this file (${contentOf(version.entries)})`;
}
