import { type Json, type JsonObject, listAt, own, stringAt } from "../json.ts";

export interface Taint {
  readonly key: string;
  readonly value?: string | undefined;
  readonly effect: string;
}

export type TaintEffect = "NoSchedule" | "PreferNoSchedule" | "NoExecute";

export const TAINT_EFFECTS: ReadonlySet<string> = new Set<TaintEffect>([
  "NoSchedule",
  "PreferNoSchedule",
  "NoExecute",
]);

/** The effects that keep a pod off a node; PreferNoSchedule is a preference only. */
export const HARD_EFFECTS: readonly TaintEffect[] = ["NoSchedule", "NoExecute"];

/** A taint as kubectl prints it: `dedicated=edge:NoSchedule`, without a value `dedicated:NoSchedule`. */
export function describeTaint({ key, value = "", effect }: Taint): string {
  return `${key}${value === "" ? "" : `=${value}`}:${effect}`;
}

/** The taints of a node object; skips elements that are not taints. */
export function taintsOf(node: JsonObject): readonly Taint[] {
  const taints: Taint[] = [];
  for (const item of listAt(node, "spec", "taints")) {
    const taint = readTaint(item);
    if (taint !== undefined) taints.push(taint);
  }
  return taints;
}

function readTaint(item: Json): Taint | undefined {
  const key = stringAt(item, "key");
  const effect = stringAt(item, "effect");
  if (key === undefined || effect === undefined) return undefined;
  const value = own(item, "value");
  return { key, value: typeof value === "string" ? value : "", effect };
}
