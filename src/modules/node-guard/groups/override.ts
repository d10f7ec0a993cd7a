import { z } from "zod";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { annotationsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { LABEL_LENGTH } from "../../../core/kubernetes/schemas/bounds.ts";
import { conditions, moment } from "../../../core/policy/condition.ts";
import type { CelRule } from "../../../core/policy/kind.ts";
import type { Override } from "./group.ts";

/** The longest override. */
export const MOST_HOURS = 24;
const MOST_MS = MOST_HOURS * 3_600_000;

/** Who created the override, written at its creation by usher. */
export const GRANTED_BY = "usher.dev/granted-by";

/** A parsed override; `undefined` if it can never count. */
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

/** RFC 3339 with a zone, as Kubernetes writes times. */
const time = z.iso.datetime({ offset: true }).max(40);

export const overrideSpec = z.strictObject({
  group: z.string().min(1).max(LABEL_LENGTH).describe("The group whose mode is overridden."),
  mode: z.enum(["Inform", "Disable"]).describe("The mode of the group meanwhile. An override only weakens."),
  from: time.describe("When the override begins to count."),
  until: time.describe(`When it ends by itself: at most ${MOST_HOURS} hours after from.`),
  reason: z.string().min(1).max(1_024).describe("Why the group is overridden, for the audit log."),
});

/** The API server checks these also while usher is down. */
export const OVERRIDE_RULES: readonly CelRule[] = [
  { rule: "self == oldSelf", message: "an override can't be changed: revoke it and grant another" },
  { rule: "timestamp(self.from) < timestamp(self.until)", message: "until must be after from" },
  {
    rule: `timestamp(self.until) - timestamp(self.from) <= duration('${MOST_HOURS}h')`,
    message: `until must be at most ${MOST_HOURS} hours after from`,
  },
];

export const overrideStatus = z.strictObject({
  observedGeneration: z.int().optional().describe("The generation that was last reconciled."),
  grantedBy: z.string().max(1_024).optional().describe("The user who created the override."),
  endedAt: moment.optional().describe("When the override ended."),
  conditions: conditions("Active: whether the override counts now."),
});
