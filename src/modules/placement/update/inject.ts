import type { NeedMore } from "../../../core/evaluate/decision.ts";
import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { policyKey } from "../../../core/evaluate/finding.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import { atPointer } from "../../../core/path.ts";
import type { Origin } from "../../../core/provenance/origin.ts";
import type { Limits } from "../criteria/criterion.ts";
import { mergePolicies } from "../merge/merge-policies.ts";
import type { Site } from "../merge/site.ts";
import { storedOrigins } from "../merge/stored-value.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import type { Selection } from "../select/select.ts";
import { isPod } from "../select/target.ts";
import { combinedTerms, outdated, removable } from "./outdated.ts";
import { removeInjections } from "./remove-injection.ts";
import { restore } from "./restore.ts";

/** One UPDATE of an object that may be changed. */
export interface Update {
  readonly context: Context;
  readonly site: Site;
  readonly old: JsonObject;
  readonly limits: Limits;
  readonly findings: Finding[];
}

/** Removes what policies had added and no longer want, and adds what they want now. */
export function inject(update: Update, { wanting }: Selection): NeedMore | undefined {
  const { context, site, old, limits, findings } = update;
  if (wanting.length === 0) return undefined;
  const policies = new Map(wanting.map((policy) => [policyKey(policy.ref), policy]));
  const origins = storedOrigins(old);
  const gone = origins.flatMap((origin) => {
    const policy = policies.get(origin.policy);
    return policy === undefined ? [] : [outdated(origin, policy, old, site.spec)];
  });
  if (gone.some((origin) => Object.keys(combinedTerms(origin, site.spec).added).length > 0)) {
    // Requirements of several policies are combined in each term: all are removed, and those of the others restored.
    const others = origins.filter(({ policy }) => !policies.has(policy));
    withdraw(update, [...gone, ...others.map((origin) => combinedTerms(origin, site.spec))]);
    const { view, steps } = context;
    restore({ site, view, old, steps }, findings, (policy) => !policies.has(policy));
  } else withdraw(update, gone);
  return mergePolicies(context, site, limits, withoutConsumed(wanting, site), findings);
}

/** Removes injections as far as the API server allows. */
export function withdraw({ site: { draft, spec }, limits }: Update, origins: readonly Origin[]): void {
  const start = draft.mark();
  const parts = origins.map((origin) => {
    const part = removable(origin, limits, spec);
    return { ...part, set: part.set.filter((place) => isAsStored(draft, place)) };
  });
  removeInjections(draft, parts, spec);
  if (draft.mark() > start) draft.disown(parts);
}

/**
 * Whether a place is as it was stored. One that has another value by now is not removed. Asked about one update twice, usher finds the new
 * value of a policy there, and it is still the policy's. Policies set texts alone: a note that names anything else was written by hand.
 */
function isAsStored({ object, old }: Draft, place: string): boolean {
  const value = atPointer(object, place);
  return typeof value === "string" && value === atPointer(old, place);
}

/** An existing pod gets none of what controllers remove from it, without a finding. */
export function withoutConsumed(
  policies: readonly PlacementPolicy[],
  { workload }: Site,
): readonly PlacementPolicy[] {
  if (!isPod(workload)) return policies;
  return policies.map((policy) => {
    const criteria = policy.criteria.filter(({ criterion }) => criterion.consumedByPod !== true);
    return criteria.length === policy.criteria.length ? policy : { ...policy, requiredLabels: [], criteria };
  });
}
