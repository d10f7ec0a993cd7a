import { describeTaint } from "../../../core/kubernetes/taints.ts";
import type { LostKey } from "../rules/conflicts.ts";
import { keyAndEffect, type NodeChange } from "./difference.ts";

/** Enough to recognise a value; annotations may have kilobytes. */
const SHOWN_CHARACTERS = 120;

/** `label pool=edge`, `label node-role.kubernetes.io/edge`, `taint dedicated=edge:NoSchedule` */
export function describeEntry(what: NodeChange["what"], key: string, value: string): string {
  if (what === "taint") return `taint ${describeTaint({ ...keyAndEffect(key), value })}`;
  return `${what} ${key}${value === "" ? "" : `=${shortened(value)}`}`;
}

/** The entry as it is set or removed: `label pool=edge (was core)` */
export function describeChange({ what, change, key, from = "", to = "" }: NodeChange): string {
  const was = change === "change" ? ` (was ${from === "" ? '""' : shortened(from)})` : "";
  return `${describeEntry(what, key, change === "remove" ? from : to)}${was}`;
}

/** Why a rule does not get a key: `label pool=core: rule cluster-config/edge sets edge` */
export function describeLost({ what, key, value, winner, winning }: LostKey): string {
  return `${describeEntry(what, key, value)}: rule ${winner.id} sets ${winning === "" ? '""' : shortened(winning)}`;
}

function shortened(value: string): string {
  return value.length > SHOWN_CHARACTERS ? `${value.slice(0, SHOWN_CHARACTERS)}…` : value;
}
