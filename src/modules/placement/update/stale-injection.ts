import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import { policyKey } from "../../../core/evaluate/finding.ts";
import { type Criteria, wantedOf } from "../criteria/criterion.ts";
import type { Injection, StalePart } from "./injections.ts";

/** The parts of injections that policies no longer want, of policies that inject on update. Those of all others stay. */
export function staleParts(
  policies: readonly { readonly ref: PolicyRef; readonly criteria: Criteria }[],
): StalePart {
  const byKey = new Map(policies.map((policy) => [policyKey(policy.ref), policy]));
  return (injection) => {
    const policy = byKey.get(injection.origin.policy);
    return policy === undefined ? undefined : stalePart(injection, policy);
  };
}

/**
 * The part of an injection that its policy no longer wants. What it still wants stays where it is: removed and added at the end of a list
 * it would be a change, and roll out.
 */
export function stalePart(
  { origin: { uid, generation }, criterion, value }: Injection,
  { ref, criteria }: { readonly ref: PolicyRef; readonly criteria: Criteria },
): unknown {
  // The policy that wrote it wants the same; a part that was skipped then is not a sign of change.
  if (uid !== undefined && uid === ref.uid && generation !== undefined && generation === ref.generation)
    return undefined;
  return criterion.outdated(value, wantedOf(criteria, criterion));
}

/** A reapply starts from the object without any injection. */
export const ALL_STALE: StalePart = ({ value }) => value;
