import { checkObject, versionOf } from "../../core/policy/check.ts";
import type { ConfiguredKind } from "../../core/policy/kind.ts";
import { type Problem, problem } from "../../core/policy/problem.ts";
import type { TimeSlices } from "../../core/time-slices.ts";
import type { View } from "../../core/view/view.ts";
import { readText } from "../reader/bytes.ts";
import { type Located, located, readDocument } from "../reader/read-documents.ts";
import { cutDocuments } from "../text/documents.ts";
import { type Entry, type EntryProblem, entriesOf, isPartial } from "./entry.ts";
import type { Resources } from "./resources.ts";
import type { FileStat } from "./tree.ts";

/** The content of a file, not in force yet. */
export interface Candidate {
  /** Kept until it is decided what to serve: problems are located in it. */
  readonly text: string;
  entries: readonly Entry[];
  /** Problems of the text. */
  readonly located: Located[];
  /** Problems of objects, not located yet. */
  readonly pending: EntryProblem[];
}

/** Reads a file. Rejects with `Unreadable` if there is no text. `progress` gets the number of documents read, and of all. */
export async function readCandidate(
  { name: file, path }: FileStat,
  resources: Resources,
  slices: TimeSlices,
  progress: (done: number, total: number) => void,
): Promise<Candidate> {
  return candidateOf(file, await readText(path), resources, slices, progress);
}

/** The same for a text that was read. */
export async function candidateOf(
  file: string,
  { text, problems }: Awaited<ReturnType<typeof readText>>,
  resources: Resources,
  slices: TimeSlices,
  progress: (done: number, total: number) => void = () => {},
): Promise<Candidate> {
  // Invalid encoding would only cause misleading errors later.
  const cut = problems.length > 0 ? { chunks: [], problems } : cutDocuments(text);
  const entries: Entry[] = [];
  const pending: EntryProblem[] = [];
  const found = cut.problems.map((one) => located(text, one));
  for (const [document, chunk] of cut.chunks.entries()) {
    const read = readDocument(text, chunk, document);
    found.push(...read.problems);
    for (const { path: inside, value } of read.manifests) {
      const place = { file, document, path: inside, ordinal: entries.length };
      const made = entriesOf(value, place, resources);
      entries.push(...made.entries);
      pending.push(...made.problems);
    }
    progress(document + 1, cut.chunks.length);
    await slices.next();
  }
  return { text, entries, located: found, pending };
}

/**
 * Checks the policies of a file and marks those with errors; given `now`, as if they were written at that time. A
 * policy in a version that its kind does not have is left out, as an API server rejects it. An object other than a
 * policy, such as the configuration of a module, is left out with an error unless its kind says otherwise: it has no
 * failure mode.
 */
export async function checkCandidate(
  candidate: Candidate,
  view: View,
  configured: ConfiguredKind,
  slices: TimeSlices,
  now?: number,
): Promise<void> {
  const leftOut = new Set<Entry>();
  for (const entry of candidate.entries) {
    const counts = isPartial(entry) && isServed(entry);
    for (const found of problemsOf(entry, view, configured, now)) {
      if (found.severity === "error" && !counts) leftOut.add(entry);
      else if (found.severity === "error")
        entry.invalid = found.pruned && entry.invalid !== "failing" ? "pruned" : "failing";
      candidate.pending.push({ entry, problem: found });
    }
    await slices.next();
  }
  if (leftOut.size > 0) candidate.entries = candidate.entries.filter((entry) => !leftOut.has(entry));
}

function isServed({ resource: { policy }, object }: Entry): boolean {
  return policy === undefined || versionOf(policy, object) !== undefined;
}

/** The author of a file sees an unknown field only here: the last good version stays, as kubectl would reject the file. */
function asWritten(found: Problem): Problem {
  return found.pruned ? { ...found, severity: "error" } : found;
}

function problemsOf(
  { resource, object }: Entry,
  view: View,
  configured: ConfiguredKind,
  now: number | undefined,
): readonly Problem[] {
  if (resource.policy === undefined) return [];
  try {
    const found = checkObject(resource.policy, object, view, configured, now);
    return resource.policy.standing === "resource" ? found.map(asWritten) : found;
  } catch (error) {
    // A check that throws is a fault of the module; the policy can't be trusted, and the others continue.
    const reason = error instanceof Error ? error.message : String(error);
    return [problem([], `can't be checked: ${reason}; please report this as a bug`)];
  }
}
