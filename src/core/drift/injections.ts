import { canonical, equal, type Json, type JsonObject } from "../json.ts";
import { atPointer, fieldPath, type Path, pointer, steps } from "../path.ts";
import { type Origin, provenanceOf } from "../provenance/origin.ts";
import { Kept } from "../provenance/origin-index.ts";

/**
 * How what an object carries of a policy stands to what the policy wants now.
 *
 * - `current`: it has what the policy wants;
 * - `stale`: it has something of the policy, and the policy wants something else by now;
 * - `orphaned`: it has something of a policy that is gone, or that no longer wants this object;
 * - `missing`: the policy wants something, and the object has nothing of it.
 */
export const DRIFT_STATES = ["current", "stale", "orphaned", "missing"] as const;
export type DriftState = (typeof DRIFT_STATES)[number];

/** One field. Of a list `has` and `wants` are the policy's own elements of it. */
export interface InjectedField {
  /** From the pod's spec on: `nodeSelector.pool` */
  readonly field: string;
  readonly has?: Json;
  readonly wants?: Json;
}

/** What an object carries of one policy. */
export interface Injection {
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  readonly state: DriftState;
  /** Of the policy, when it wrote what is there. */
  readonly generation?: number;
  readonly parts: readonly InjectedField[];
}

/** Compares what a stored object says of its origins with what it would say if it were written anew. */
export function injectionsIn(module: string, stored: JsonObject, anew: JsonObject, spec: Path): Injection[] {
  const before = originsOf(module, stored);
  const after = originsOf(module, anew);
  const found: Injection[] = [];
  // One for all policies: each list is spelled out once.
  const [keptBefore, keptAfter] = [new Kept(stored, stored), new Kept(anew, anew)];
  for (const policy of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const origin = before.get(policy);
    const had = origin === undefined ? new Map<string, Json>() : contentOf(origin, stored, spec, keptBefore);
    const next = after.get(policy);
    const wants = next === undefined ? new Map<string, Json>() : contentOf(next, anew, spec, keptAfter);
    if (had.size === 0 && wants.size === 0) continue;
    const generation = origin?.generation;
    found.push({
      policy,
      state: standingOf(had, wants),
      ...(generation === undefined || had.size === 0 ? {} : { generation }),
      parts: partsOf(had, wants),
    });
  }
  return found;
}

function originsOf(module: string, object: JsonObject): Map<string, Origin> {
  const mine = provenanceOf(object).filter((origin) => origin.module === module);
  return new Map(mine.map((origin) => [origin.policy, origin]));
}

/** What an origin names and the object really carries, by field. While usher was away, anybody could have taken it out. */
function contentOf(origin: Origin, object: JsonObject, spec: Path, kept: Kept): Map<string, Json> {
  const content = new Map<string, Json>();
  for (const place of origin.set) {
    const value = atPointer(object, place);
    if (value !== undefined) content.set(fieldOf(place, spec), value);
  }
  for (const list of Object.keys(origin.added)) {
    const elements = origin.added[list]?.filter((one) => kept.hasElement(list, canonical(one))) ?? [];
    if (elements.length > 0) content.set(fieldOf(list, spec), elements);
  }
  return content;
}

function standingOf(had: ReadonlyMap<string, Json>, wants: ReadonlyMap<string, Json>): DriftState {
  if (had.size === 0) return "missing";
  if (wants.size === 0) return "orphaned";
  const same = had.size === wants.size && [...had].every(([field, value]) => equal(value, wants.get(field)));
  return same ? "current" : "stale";
}

function partsOf(had: ReadonlyMap<string, Json>, wants: ReadonlyMap<string, Json>): InjectedField[] {
  return [...new Set([...had.keys(), ...wants.keys()])].sort().map((field) => {
    const has = had.get(field);
    const wanted = wants.get(field);
    return {
      field,
      ...(has === undefined ? {} : { has }),
      ...(wanted === undefined ? {} : { wants: wanted }),
    };
  });
}

function fieldOf(place: string, spec: Path): string {
  const prefix = `${pointer(spec)}/`;
  return fieldPath(steps(place.startsWith(prefix) ? place.slice(prefix.length - 1) : place));
}
