import type { Origin } from "../decision/draft.ts";
import type { Finding } from "../decision/finding.ts";
import { at, equal, type Json, type JsonObject } from "../json.ts";
import { atPointer, fieldPath, type Path, pointer, steps } from "../path.ts";
import { policyKey } from "../policy/policy-ref.ts";
import { provenanceOf } from "../provenance/annotation.ts";
import { Unchanged } from "../provenance/provenance.ts";

/**
 * How an object's injections of a policy compare with the current policy.
 *
 * - `current`: the object matches the policy;
 * - `stale`: it has an outdated injection of the policy;
 * - `orphaned`: it has an injection of a policy that is gone or no longer selects it;
 * - `missing`: the policy selects it, and it has no injection of the policy, or does not meet what the policy enforces.
 */
export const DRIFT_STATES = ["current", "stale", "orphaned", "missing"] as const;
export type InjectionState = (typeof DRIFT_STATES)[number];

/** One field. For a list, `has` and `wants` are the elements of the policy. */
export interface InjectedField {
  /** Relative to the pod's spec: `nodeSelector.pool`. */
  readonly field: string;
  readonly has?: Json;
  readonly wants?: Json;
}

/** The injections of one policy into an object. */
export interface Injection {
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  readonly state: InjectionState;
  /** Of the policy, at the time of the injection. */
  readonly generation?: number;
  readonly parts: readonly InjectedField[];
}

/** Compares the provenance of a stored object with its provenance if it were reapplied. */
export function compareInjections(
  module: string,
  stored: JsonObject,
  reapplied: JsonObject,
  spec: Path,
): Injection[] {
  const before = originsOf(module, stored);
  const after = originsOf(module, reapplied);
  const found: Injection[] = [];
  // Shared by all policies, so that each list is indexed once.
  const [inStored, inReapplied] = [new Unchanged(stored, stored), new Unchanged(reapplied, reapplied)];
  for (const policy of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const origin = before.get(policy);
    const had = origin === undefined ? new Map<string, Json>() : contentOf(origin, stored, spec, inStored);
    const next = after.get(policy);
    const wants =
      next === undefined ? new Map<string, Json>() : contentOf(next, reapplied, spec, inReapplied);
    if (had.size === 0 && wants.size === 0) continue;
    const generation = origin?.generation;
    found.push({
      policy,
      state: stateOf(had, wants),
      ...(generation === undefined || had.size === 0 ? {} : { generation }),
      parts: fieldsOf(had, wants),
    });
  }
  return found;
}

/** Unmet requirements of a stored object, by policy. */
export function unmetIn(findings: readonly Finding[], stored: JsonObject, spec: Path): Injection[] {
  const unmet = new Map<string, InjectedField[]>();
  for (const { policy, outcome, path, wants } of findings) {
    if (policy === undefined || path === undefined || wants === undefined) continue;
    if (outcome !== "violated" && outcome !== "would-violate") continue;
    const has = at(stored, ...path);
    const field = { field: fieldOf(pointer(path), spec), ...(has === undefined ? {} : { has }), wants };
    unmet.set(policyKey(policy), [...(unmet.get(policyKey(policy)) ?? []), field]);
  }
  return [...unmet].map(([policy, parts]) => ({ policy, state: "missing", parts }));
}

function originsOf(module: string, object: JsonObject): Map<string, Origin> {
  const mine = provenanceOf(object).filter((origin) => origin.module === module);
  return new Map(mine.map((origin) => [origin.policy, origin]));
}

/**
 * The recorded values of an origin that the object still has, by field: fields may have been removed while usher was
 * not running.
 */
function contentOf(origin: Origin, object: JsonObject, spec: Path, has: Unchanged): Map<string, Json> {
  const content = new Map<string, Json>();
  for (const place of origin.set) {
    const value = atPointer(object, place);
    if (value !== undefined) content.set(fieldOf(place, spec), value);
  }
  for (const list of Object.keys(origin.added)) {
    const elements = origin.added[list]?.filter((one) => has.hasElement(list, one)) ?? [];
    if (elements.length > 0) content.set(fieldOf(list, spec), elements);
  }
  return content;
}

function stateOf(had: ReadonlyMap<string, Json>, wants: ReadonlyMap<string, Json>): InjectionState {
  if (had.size === 0) return "missing";
  if (wants.size === 0) return "orphaned";
  const same = had.size === wants.size && [...had].every(([field, value]) => equal(value, wants.get(field)));
  return same ? "current" : "stale";
}

function fieldsOf(had: ReadonlyMap<string, Json>, wants: ReadonlyMap<string, Json>): InjectedField[] {
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
