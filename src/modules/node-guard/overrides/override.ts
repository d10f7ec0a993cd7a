import { type JsonObject, stringAt } from "../../../core/json.ts";
import { annotationsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { Override } from "../groups/group.ts";

/** The longest override. */
export const MOST_HOURS = 24;
const MOST_MS = MOST_HOURS * 3_600_000;

/** Who created the override, written at its creation by usher. */
export const GRANTED_BY = "usher.dev/granted-by";

/** An override as it is written; `undefined` where it can never count. */
export function readOverride(object: JsonObject): Override | undefined {
  const mode = stringAt(object, "spec", "mode");
  const from = Date.parse(stringAt(object, "spec", "from") ?? "");
  const until = Date.parse(stringAt(object, "spec", "until") ?? "");
  const group = stringAt(object, "spec", "group") ?? "";
  if ((mode !== "Inform" && mode !== "Disable") || group === "") return undefined;
  // Also false for a time that can't be read.
  if (!(from < until && until - from <= MOST_MS)) return undefined;
  return {
    name: nameOf(object),
    group,
    mode,
    from,
    until,
    reason: stringAt(object, "spec", "reason") ?? "",
    grantedBy: stringAt(annotationsOf(object), GRANTED_BY) ?? "",
  };
}

/** Whether an override counts at a time. */
export function isActive({ from, until }: Override, now: number): boolean {
  return from <= now && now < until;
}
