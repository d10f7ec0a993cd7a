import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import { at, canonical, isObject, type Json, type JsonObject, listAt, own } from "../../../core/json.ts";
import { type Path, pointer, steps } from "../../../core/path.ts";
import { type Origin, provenanceOf, shallow } from "../../../core/provenance/origin.ts";
import { Kept } from "../../../core/provenance/origin-index.ts";
import { type Criteria, NO_CRITERIA } from "../criteria/criteria.ts";
import { requirementsOf } from "../criteria/node-terms/node-terms.ts";
import { LISTS, NAMES, REQUIRED_NODE_TERMS } from "../criteria/places.ts";
import type { PlacementRequest } from "../merge/merge.ts";

/**
 * What the stored object's provenance says that policies put there, as far as its spec still carries it: a re-apply of a manifest strips
 * it, and merging these wishes brings it back. The labels of nodeSelectors come first, for terms are judged by them; then the
 * policies as they came when the object was made, as far as that shows.
 */
export function placementRequestsFrom(old: JsonObject, spec: Path): PlacementRequest[] {
  const stored = new Kept(old, old);
  const podSpec = at(old, ...spec);
  const first: PlacementRequest[] = [];
  const terms = listAt(podSpec, ...REQUIRED_NODE_TERMS)
    .filter(shallow)
    .map((term) => [...requirementsOf(term)]);
  const then: { readonly wish: PlacementRequest; readonly place: number }[] = [];
  for (const origin of provenanceOf(old)) {
    if (origin.module !== "placement") continue;
    const nodeSelector = pairsOf(origin, old, spec);
    const rest = restOf(origin, podSpec, spec, stored);
    const ref = refFrom(origin);
    if (nodeSelector.length > 0) first.push(wishOf(ref, { ...NO_CRITERIA, nodeSelector }));
    if (rest !== undefined) then.push({ wish: wishOf(ref, rest), place: placeOf(rest, terms) });
  }
  then.sort((a, b) => a.place - b.place);
  return [...first, ...then.map(({ wish }) => wish)];
}

function wishOf(ref: PolicyRef, criteria: Criteria): PlacementRequest {
  return { ref, criteria, onConflict: "Skip", failure: "Ignore", restoring: true };
}

function pairsOf(origin: Origin, old: JsonObject, spec: Path): (readonly [string, string])[] {
  const prefix = `${pointer([...spec, "nodeSelector"])}/`;
  const pairs: (readonly [string, string])[] = [];
  for (const place of origin.set) {
    if (!place.startsWith(prefix)) continue;
    // Whatever is deeper is no label, and is not found.
    const [key = "", ...deeper] = steps(place).slice(spec.length + 1);
    const value = deeper.length > 0 ? undefined : at(old, ...spec, "nodeSelector", key);
    if (typeof value === "string") pairs.push([key, value]);
  }
  return pairs;
}

/** All but the nodeSelector; nothing where there is nothing else. */
function restOf(origin: Origin, podSpec: Json | undefined, spec: Path, stored: Kept): Criteria | undefined {
  const found: { -readonly [Key in keyof Criteria]?: Criteria[Key] } = {};
  for (const field of NAMES) {
    const value = origin.set.includes(pointer([...spec, field])) ? own(podSpec, field) : undefined;
    if (typeof value === "string" && value !== "") found[field] = value;
  }
  for (const { criterion, path } of LISTS) {
    const added = origin.added[pointer([...spec, ...path])];
    if (added === undefined) continue;
    const present = new Set(
      listAt(podSpec, ...path)
        .filter(shallow)
        .map(canonical),
    );
    const elements = added.filter(isObject).filter((one) => present.has(canonical(one)));
    if (elements.length > 0) found[criterion] = elements;
  }
  const list = pointer([...spec, ...REQUIRED_NODE_TERMS]);
  const terms = origin.added[list]
    ?.filter(isObject)
    .filter((term) => stored.hasElement(list, canonical(term)));
  if (terms !== undefined && terms.length > 0) found.requiredNodeTerms = terms;
  return Object.keys(found).length === 0 ? undefined : { ...NO_CRITERIA, ...found };
}

/** How far behind the pod's own requirements those of a policy come: each policy has put its own behind those before it. */
function placeOf({ requiredNodeTerms }: Criteria, stored: readonly (readonly string[])[]): number {
  const theirs = new Set(requiredNodeTerms.flatMap((term) => [...requirementsOf(term)]));
  let place = 0;
  for (const term of theirs.size === 0 ? [] : stored) {
    const before = term.findIndex((requirement) => theirs.has(requirement));
    place = Math.max(place, before);
  }
  return place;
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
