import { z } from "zod";
import { LABEL_LENGTH } from "../../../core/kubernetes/schemas/bounds.ts";
import { conditions, moment } from "../../../core/policy/condition.ts";
import type { CelRule } from "../../../core/policy/kind.ts";
import { MOST_HOURS } from "./override.ts";

/** RFC 3339 with a zone, as Kubernetes writes times. */
const time = z.iso.datetime({ offset: true }).max(40);

export const overrideSpec = z.strictObject({
  group: z.string().min(1).max(LABEL_LENGTH).describe("The group whose mode is overridden."),
  mode: z.enum(["Inform", "Disable"]).describe("The mode of the group meanwhile. An override only weakens."),
  from: time.describe("When the override begins to count."),
  until: time.describe(`When it ends by itself: at most ${MOST_HOURS} hours after from.`),
  reason: z.string().min(1).max(1_024).describe("Why the group is overridden, for the audit log."),
});

/** The API server checks these while usher is away as well. */
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
