import type { Edit } from "../evaluate/draft.ts";
import type { Evaluation } from "../evaluate/evaluate-hooks.ts";
import { type ModuleFinding, policyName } from "../evaluate/finding.ts";
import { fieldPath } from "../path.ts";
import type { Change } from "./result.ts";

/** How a change is written in tables. */
export const SIGNS = { add: "+", change: "~", remove: "-" } as const;

/** The changes of the mutating phase, in the order of the edits. One finding may explain several edits; it is one change. */
export function changesOf({ draft, phase }: Evaluation): Change[] {
  if (phase !== "mutate") return [];
  const seen = new Set<ModuleFinding>();
  return draft.edits.flatMap((edit) => {
    const { finding, path } = edit;
    if (finding === undefined || seen.has(finding)) return [];
    seen.add(finding);
    const policy = finding.policy === undefined ? "" : policyName(finding.policy);
    const { module, message } = finding;
    return [{ module, policy, change: kindOf(edit), path: fieldPath(path), message }];
  });
}

/** What each finding with an edit changed. */
export function changeKinds(phases: readonly Evaluation[]): ReadonlyMap<ModuleFinding, Change["change"]> {
  const kinds = new Map<ModuleFinding, Change["change"]>();
  for (const { draft } of phases)
    for (const edit of draft.edits)
      if (edit.finding !== undefined && !kinds.has(edit.finding)) kinds.set(edit.finding, kindOf(edit));
  return kinds;
}

/** A list that is written whole for some elements adds these. */
function kindOf({ kind, provenance, existed, previous, slot, path }: Edit): Change["change"] {
  if (kind === "remove") return "remove";
  const replaces = existed && previous !== undefined && previous !== null && slot.length === path.length;
  return kind === "set" && provenance?.adds === undefined && replaces ? "change" : "add";
}
