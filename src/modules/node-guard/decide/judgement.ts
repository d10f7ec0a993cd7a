import type { Claim } from "../claims/claim.ts";
import type { Group } from "../groups/group.ts";

/** A claim, or a rule beside the claims, on a group that was judged. */
export interface Judgement {
  readonly rule: Claim["rule"] | "node-labels" | "access";
  readonly code: string;
  /** False where the rule only warns, whatever the mode. */
  readonly refused: boolean;
  readonly group: Group;
  /** Names of nodes, for people; empty where none is known. */
  readonly nodes: readonly string[];
  /** Absent: not asked. */
  readonly actor?: Side;
  readonly pod?: Side;
  /** An emergency identity answers for the pod. */
  readonly vouched?: string;
  /** What is special about the node. */
  readonly node?: "unknown" | "new";
}

export interface Side {
  /** How messages name it: `user "mallory"`, `namespace "shop"`. */
  readonly name: string;
  /** The entry that authorises it; `undefined`: none does. */
  readonly by: string | undefined;
}

export type GuardVerdict = "allow" | "would-deny" | "deny";

export function isViolation({ actor, pod, vouched }: Judgement): boolean {
  if (vouched !== undefined) return false;
  return [actor, pod].some((side) => side !== undefined && side.by === undefined);
}

export function verdictOf(judgement: Judgement): GuardVerdict {
  const { group, refused } = judgement;
  if (!isViolation(judgement) || group.effectiveMode === "Disable" || !refused) return "allow";
  if (group.effectiveMode === "Inform") return "would-deny";
  return isEarly(judgement) && group.earlyRefusal === "Warn" ? "would-deny" : "deny";
}

/** Before the pod has a node: refused only so that its owner learns of it early. */
function isEarly({ rule }: Judgement): boolean {
  return rule === "pinned" || rule === "exclusive" || rule === "implied";
}
