import type { JsonObject } from "../../../core/json.ts";
import { conditionOf, type ObservedCondition, observed, timeOf } from "../../../core/policy/condition.ts";
import type { Override } from "../groups/group.ts";
import { isActive } from "../groups/override.ts";

/** The status of an override, and in how many seconds it changes by itself. `missing`: why it weakens nothing. */
export function statusOfOverride(
  override: Override | undefined,
  generation: number | undefined,
  before: JsonObject,
  now: number,
  missing: string | undefined = undefined,
): { readonly status: JsonObject; readonly requeueAfter?: number } {
  const active = observe(override, now, missing);
  const next =
    override === undefined
      ? undefined
      : now < override.from
        ? override.from
        : now < override.until
          ? override.until
          : undefined;
  return {
    status: {
      ...observed(generation),
      ...(override === undefined || override.grantedBy === "" ? {} : { grantedBy: override.grantedBy }),
      ...(override !== undefined && now >= override.until ? { endedAt: timeOf(override.until) } : {}),
      conditions: [conditionOf(active, generation, before, now)],
    },
    ...(next === undefined ? {} : { requeueAfter: Math.max(1, Math.ceil((next - now) / 1_000)) }),
  };
}

function observe(
  override: Override | undefined,
  now: number,
  missing: string | undefined,
): ObservedCondition {
  const type = "Active";
  if (override === undefined)
    return {
      type,
      holds: false,
      reason: "Invalid",
      message: "has no effect: until must be at most 24 hours after from",
    };
  if (missing !== undefined) return { type, holds: false, reason: "NoGroup", message: missing };
  const { group, mode, from, until, reason } = override;
  if (isActive(override, now))
    return {
      type,
      holds: true,
      reason: "Granted",
      message: `group ${group} is ${mode} at most until ${timeOf(until)}: ${reason}`,
    };
  return now < from
    ? { type, holds: false, reason: "Pending", message: `begins at ${timeOf(from)}` }
    : { type, holds: false, reason: "Expired", message: `ended at ${timeOf(until)}` };
}
