import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import type { Origin } from "../../../core/provenance/origin.ts";
import { Kept } from "../../../core/provenance/origin-index.ts";
import { CRITERIA } from "../criteria/criteria.ts";
import { type Criteria, type Stored, wantedOf } from "../criteria/criterion.ts";
import { storedOrigins } from "../merge/stored-value.ts";
import type { PlacementRequest } from "../merge/target.ts";

/**
 * The injections that the stored object's provenance names and its spec still has, as placement requests: a re-apply of a manifest strips
 * them, and merging these requests restores them. Criteria that others are judged by come first; then the policies in the order in which
 * they were applied, as far as that shows.
 */
export function injectionsOf(old: JsonObject, spec: Path): PlacementRequest[] {
  const stored: Stored = { podSpec: at(old, ...spec), spec, kept: new Kept(old, old) };
  const ranks = CRITERIA.flatMap((criterion) => {
    const rank = criterion.restoreRank?.(stored);
    return rank === undefined ? [] : [{ criterion, rank }];
  });
  const rankOf = (injected: Criteria) =>
    ranks.reduce((highest, { criterion, rank }) => {
      const value = wantedOf(injected, criterion);
      return value === undefined ? highest : Math.max(highest, rank.of(value));
    }, 0);
  const first: PlacementRequest[] = [];
  const then: { readonly request: PlacementRequest; readonly rank: number }[] = [];
  for (const origin of storedOrigins(old)) {
    const ref = refFrom(origin);
    const injected: Criteria = CRITERIA.flatMap((criterion) => {
      const value = criterion.injected(origin, stored);
      return value === undefined ? [] : [{ criterion, value }];
    });
    const early = injected.filter(({ criterion }) => criterion.restoredFirst === true);
    const late = injected.filter(({ criterion }) => criterion.restoredFirst !== true);
    if (early.length > 0) first.push(restoring(ref, early));
    if (late.length > 0) then.push({ request: restoring(ref, late), rank: rankOf(late) });
  }
  then.sort((a, b) => a.rank - b.rank);
  return [...first, ...then.map(({ request }) => request)];
}

function restoring(ref: PolicyRef, criteria: Criteria): PlacementRequest {
  return { ref, criteria, onConflict: "Skip", failure: "Ignore", restoring: true };
}

/** `PodSchedulingPolicy/shop/etcd` or `ClusterPodSchedulingPolicy/etcd`, as provenance writes it. */
function refFrom({ policy, uid, generation }: Origin): PolicyRef {
  const [kind = "", first = "", second] = policy.split("/");
  return {
    kind,
    ...(second === undefined ? { name: first } : { namespace: first, name: second }),
    ...(uid === undefined ? {} : { uid }),
    ...(generation === undefined ? {} : { generation }),
  };
}
