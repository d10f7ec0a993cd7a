import { checkObject, versionOf } from "../../core/policy/check.ts";
import type { ConfiguredKind } from "../../core/policy/ignored-kind.ts";
import { type Problem, problem } from "../../core/policy/problem.ts";
import type { View } from "../../core/view/view.ts";
import { type Entry, isPartial } from "./entry.ts";
import type { Candidate } from "./file-version.ts";
import type { Pause } from "./pause.ts";

/**
 * Checks the new policies of a file and marks those with errors. A policy in a version that its kind does not have is left out, as an API
 * server refuses it. What is no policy of its own, such as the configuration of a module, is left out with an error unless its kind says
 * otherwise: it has no failure mode.
 */
export async function checkCandidate(
  candidate: Candidate,
  view: View,
  configured: ConfiguredKind,
  pause: Pause,
): Promise<void> {
  const leftOut = new Set<Entry>();
  const warned = new Set<Entry>();
  for (const entry of candidate.fresh) {
    const counts = isPartial(entry) && isServed(entry);
    for (const found of problemsOf(entry, view, configured)) {
      if (found.severity === "error" && counts)
        entry.invalid = found.pruned && entry.invalid !== "failing" ? "pruned" : "failing";
      (found.severity === "error" && !counts ? leftOut : warned).add(entry);
      candidate.pending.push({ document: entry.document, entry, problem: found });
    }
    if (pause.due) await pause.take();
  }
  if (leftOut.size + warned.size === 0) return;
  candidate.documents = candidate.documents.map((document) => {
    if (!document.entries.some((entry) => leftOut.has(entry) || warned.has(entry))) return document;
    return { ...document, clean: false, entries: document.entries.filter((entry) => !leftOut.has(entry)) };
  });
}

function isServed({ resource: { policy }, object }: Entry): boolean {
  return policy === undefined || versionOf(policy, object) !== undefined;
}

/** The author of a file sees an unknown field here or never: the last good version stays, as kubectl would refuse the file. */
function asWritten(found: Problem): Problem {
  return found.pruned ? { ...found, severity: "error" } : found;
}

function problemsOf({ resource, object }: Entry, view: View, configured: ConfiguredKind): readonly Problem[] {
  if (resource.policy === undefined) return [];
  try {
    const found = checkObject(resource.policy, object, view, configured);
    return resource.policy.standing === "resource" ? found.map(asWritten) : found;
  } catch (error) {
    // A check that throws is a fault of the module; the policy can't be trusted, and the others go on.
    const reason = error instanceof Error ? error.message : String(error);
    return [problem([], `can't be checked: ${reason}; please report this as a bug`)];
  }
}
