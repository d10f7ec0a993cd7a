import type { Origin } from "../../../core/decision/draft.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { at, canonical, equal, isObject, type Json, type JsonObject } from "../../../core/json.ts";
import { namespaceOf } from "../../../core/kubernetes/object.ts";
import { isPod } from "../../../core/kubernetes/workloads.ts";
import { atPointer, type Path, pointer } from "../../../core/path.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { policyKey } from "../../../core/policy/policy-ref.ts";
import {
  listRoom,
  type Provenance,
  readableElements,
  readProvenance,
} from "../../../core/provenance/annotation.ts";
import { Unchanged } from "../../../core/provenance/provenance.ts";
import { putBack, valueBefore } from "../../../core/provenance/take-back.ts";
import type { View } from "../../../core/view/view.ts";
import { type MergeContext, mergedObject, type PlacementContext } from "../criteria/context.ts";
import { CRITERIA } from "../criteria/criteria.ts";
import {
  type Criteria,
  type Criterion,
  CriterionValue,
  type Limits,
  NO_LIMITS,
  wantedOf,
} from "../criteria/criterion.ts";
import { reportBudgetExceeded } from "../criteria/report.ts";
import { MAX_WORK, sumOf, WorkLimit } from "../criteria/work-limit.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";
import { fits, merge } from "./merge-policies.ts";

/** A policy's injection into one field, by the stored object's annotation and as far as that object still has it. */
export interface PlacementInjection {
  readonly ref: PolicyRef;
  readonly origin: Origin;
  readonly criterion: Criterion;
  readonly value: unknown;
}

/** In the order of the criteria, then of the policies. */
export function injectionsIn(old: JsonObject, { origins }: Provenance, spec: Path): PlacementInjection[] {
  const mine = origins.filter(({ module }) => module === "placement");
  if (mine.length === 0) return [];
  const stored = { podSpec: at(old, ...spec), spec, has: new Unchanged(old, old) };
  return CRITERIA.flatMap((criterion) =>
    mine.flatMap((origin) => {
      const value = criterion.injected(origin, stored);
      return value === undefined ? [] : [{ ref: refOf(origin), origin, criterion, value }];
    }),
  );
}

/** `PodSchedulingPolicy/shop/etcd` or `ClusterPodSchedulingPolicy/etcd`, as the annotation has it. */
function refOf({ policy, uid, generation }: Origin): PolicyRef {
  const [kind = "", first = "", second] = policy.split("/");
  return {
    kind,
    ...(second === undefined ? { name: first } : { namespace: first, name: second }),
    ...(uid === undefined ? {} : { uid }),
    ...(generation === undefined ? {} : { generation }),
  };
}

/** An UPDATE of an object that may have injections. */
export interface Carrying {
  readonly placement: PlacementContext;
  readonly view: View;
  readonly old: JsonObject;
}

/** The part of an injection that is no longer required; `undefined` if all of it stays. */
export type StalePart = (injection: PlacementInjection) => unknown;

const ALL_STAYS: StalePart = () => undefined;

/** The parts of injections that policies no longer require, for policies that inject on update. Those of all others stay. */
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
 * The part of an injection that its policy no longer requires. The required part keeps its position: removed and added
 * at the end of a list it would be a change, and roll out.
 */
export function stalePart(
  { origin: { uid, generation }, criterion, value }: PlacementInjection,
  { ref, criteria }: { readonly ref: PolicyRef; readonly criteria: Criteria },
): unknown {
  // The policy that wrote it requires the same; a part that was skipped then is not a sign of change.
  if (uid !== undefined && uid === ref.uid && generation !== undefined && generation === ref.generation)
    return undefined;
  return criterion.outdated(value, wantedOf(criteria, criterion));
}

/** A reapply starts from the object without any injection. */
export const ALL_STALE: StalePart = ({ value }) => value;

export interface Carried {
  /** The names of the policies with a restored part. */
  readonly restored: readonly string[];
  /** The removed parts, in the form of `injectionText`. */
  readonly removed: ReadonlySet<string>;
}

/**
 * Restores the injections of the stored object in the new one. A re-apply of a manifest strips them: if the user's part
 * of the placement is unchanged, the stored lists are restored verbatim, so that nothing rolls out; otherwise the
 * injections are merged again. A value that the user sets wins. Stale parts are removed as far as the API server
 * allows. Only the stored object's annotation counts.
 */
export function carryInjections(
  carrying: Carrying,
  findings: Finding[],
  stalePart: StalePart = ALL_STAYS,
  limits: Limits = NO_LIMITS,
): Carried {
  const { old, placement } = carrying;
  const provenance = readProvenance(old);
  const injections = injectionsIn(old, provenance, placement.spec);
  if (injections.length === 0) return { restored: [], removed: new Set() };
  const carrier = new InjectionCarrier(carrying, provenance, injections, findings);
  for (const [criterion, all] of Map.groupBy(injections, (one) => one.criterion)) {
    if (isPod(placement.workload) && criterion.consumedByPod === true) continue;
    const stale = isRemovable(criterion, limits)
      ? all.flatMap((one) => {
          const value = stalePart(one);
          return value === undefined ? [] : [{ ...one, value }];
        })
      : [];
    if (criterion.combined === true) carrier.carryCombined(criterion, all, stale);
    else carrier.carrySeparate(criterion, all, stale);
  }
  return carrier.carried;
}

/** The new object while the stored object's injections are carried into it, criterion by criterion. */
class InjectionCarrier {
  readonly #carrying: Carrying;
  readonly #provenance: Provenance;
  readonly #injections: readonly PlacementInjection[];
  readonly #findings: Finding[];
  readonly #target: MergeContext;
  readonly #restored = new Set<string>();
  readonly #removed = new Set<string>();

  constructor(
    carrying: Carrying,
    provenance: Provenance,
    injections: readonly PlacementInjection[],
    findings: Finding[],
  ) {
    this.#carrying = carrying;
    this.#provenance = provenance;
    this.#injections = injections;
    this.#findings = findings;
    const { draft, spec, workload } = carrying.placement;
    const object = mergedObject(draft, spec, isPod(workload), this.#removed);
    // As much as cluster policies and namespaced ones had together when they were applied.
    this.#target = { ...object, limits: NO_LIMITS, limit: new WorkLimit(2 * MAX_WORK) };
  }

  get carried(): Carried {
    return { restored: [...this.#restored].sort().map(nameIn), removed: this.#removed };
  }

  /** A field, or a list whose elements count one by one: all injections are restored, then stale parts are removed. */
  carrySeparate(
    criterion: Criterion,
    all: readonly PlacementInjection[],
    stale: readonly PlacementInjection[],
  ): void {
    if (stale.length === 0 && this.#isAsStored(criterion, all)) return;
    this.#mergeAgain(all);
    const present = this.#present(criterion);
    if (stale.length > 0 && present !== undefined)
      this.#remove(criterion, stale, criterion.without(present, valuesOf(stale)));
  }

  /** A list in which policies' elements are combined with the user's: the injections are merged again into the user's part alone. */
  carryCombined(
    criterion: Criterion,
    all: readonly PlacementInjection[],
    stale: readonly PlacementInjection[],
  ): void {
    const { draft } = this.#carrying.placement;
    if (stale.length === 0) {
      if (this.#isAsStored(criterion, all)) return;
      const [mark, reported] = [draft.mark(), this.#findings.length];
      this.#mergeAgain(all);
      // The new object has every injection.
      if (draft.mark() === mark) return;
      draft.undo(mark);
      this.#findings.length = reported;
    }
    const present = this.#present(criterion);
    if (present !== undefined)
      this.#remove(criterion, all, this.#userPart(criterion, present, all, stale.length > 0));
    this.#mergeAgain(all.filter((one) => !stale.some(({ origin }) => origin === one.origin)));
  }

  /** Whether a field needs no merge: it is as stored, or the stored list was restored because the user's part is unchanged. */
  #isAsStored(criterion: Criterion, all: readonly PlacementInjection[]): boolean {
    const { placement, old } = this.#carrying;
    const path = fieldOf(criterion, placement.spec);
    const stored = at(old, ...path) ?? null;
    if (equal(placement.draft.get(...path), stored)) return true;
    if (criterion.list === undefined) return false;
    if (!isUserPartUnchanged(placement, old, this.#provenance, this.#injections, criterion)) return false;
    if (!placement.draft.set(path, stored, undefined)) return true;
    for (const one of all) {
      this.#findings.push(restoredFinding(this.#policyOf(one), criterion, path));
      this.#restored.add(policyKey(one.ref));
    }
    return true;
  }

  #present(criterion: Criterion): Json | undefined {
    const { draft, spec } = this.#carrying.placement;
    return draft.get(...fieldOf(criterion, spec));
  }

  #userPart(
    criterion: Criterion,
    present: Json,
    all: readonly PlacementInjection[],
    isRemoval: boolean,
  ): Json | undefined {
    const { placement, old } = this.#carrying;
    const path = fieldOf(criterion, placement.spec);
    const stored = at(old, ...path) ?? null;
    if (equal(present, stored)) return userPart(criterion, stored, path, this.#provenance, all);
    const before = valueBefore(this.#provenance, pointer(path), stored);
    return extendedUserPart(present, stored, before, isRemoval) ?? criterion.without(present, valuesOf(all));
  }

  #mergeAgain(some: readonly PlacementInjection[]): void {
    const { draft } = this.#carrying.placement;
    for (const one of some) {
      const start = draft.mark();
      const request = {
        ref: this.#policyOf(one),
        criteria: [new CriterionValue(one.criterion, one.value)],
        onConflict: "Skip",
        failure: "Ignore",
        restoring: true,
      } as const;
      if (fits(this.#target, sumOf([one.criterion.sizeOf(one.value)])))
        merge(this.#target, request, this.#findings);
      else reportBudgetExceeded(this.#target, request, this.#findings);
      const edits = draft.edits.slice(start);
      if (edits.some(({ finding }) => finding?.outcome === "applied")) this.#restored.add(policyKey(one.ref));
    }
  }

  /** Removes injections: `rest` is the field without them. */
  #remove(criterion: Criterion, some: readonly PlacementInjection[], rest: Json | undefined): void {
    const { placement, old } = this.#carrying;
    const { draft, spec } = placement;
    const path = fieldOf(criterion, spec);
    const parts = some.map(({ origin, value }) => ({ ...origin, ...criterion.recorded(value, spec) }));
    for (const text of parts.flatMap((part) => textsOf(part, old, criterion))) this.#removed.add(text);
    if (!equal(rest, draft.get(...path))) putBack(draft, path, rest, parts, spec.length);
  }

  #policyOf({ ref }: PlacementInjection): PolicyRef {
    const { placement, view } = this.#carrying;
    return exists(ref, view, namespaceOf(placement.draft.object)) ? ref : { ...ref, gone: true };
  }
}

function valuesOf(injections: readonly PlacementInjection[]): unknown[] {
  return injections.map(({ value }) => value);
}

/** `shop/etcd` of `PodSchedulingPolicy/shop/etcd`. */
function nameIn(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

/** The list of a criterion, or its place, in an object. */
function fieldOf({ list, path }: Criterion, spec: Path): Path {
  return [...spec, ...(list ?? path)];
}

/** A gated pod can only gain. */
function isRemovable({ name }: Criterion, { appendOnly, immutable }: Limits): boolean {
  return appendOnly !== true && immutable[name] === undefined;
}

/** The value of a stored field before policies wrote it; computed if the annotation does not have it. */
function userPart(
  { combined, without }: Criterion,
  stored: Json,
  path: Path,
  provenance: Provenance,
  all: readonly PlacementInjection[],
): Json | undefined {
  const known = combined === true ? valueBefore(provenance, pointer(path), stored) : "unknown";
  return known === "unknown" ? without(stored, valuesOf(all)) : known.value;
}

/**
 * The user's part of a list to which the user added elements, if the part from before is known. If there was none, an
 * alternative to injected ones is not narrowed to itself while the policy stays.
 */
function extendedUserPart(
  present: Json,
  stored: Json,
  before: ReturnType<typeof valueBefore>,
  isRemoval: boolean,
): readonly Json[] | undefined {
  if (before === "unknown" || (before.value === undefined && !isRemoval)) return undefined;
  if (!Array.isArray(present) || !Array.isArray(stored)) return undefined;
  const [had, has] = [new Set(stored.map(canonical)), new Set(present.map(canonical))];
  if (!had.isSubsetOf(has)) return undefined;
  const own = Array.isArray(before.value) ? before.value : [];
  return [...own, ...present.filter((one: Json) => !had.has(canonical(one)))];
}

/** Whether a field, and those that it depends on, have the stored value or the one before policies wrote them. */
function isUserPartUnchanged(
  { draft, spec }: PlacementContext,
  old: JsonObject,
  provenance: Provenance,
  injections: readonly PlacementInjection[],
  judged: Criterion,
): boolean {
  const fields = [judged, ...CRITERIA.filter(({ name }) => judged.judgedBy?.includes(name))];
  return fields.every((criterion) => {
    const path = fieldOf(criterion, spec);
    const normal = (value: Json | undefined) => (isAbsent(value, criterion) ? null : value);
    const [now, stored] = [normal(draft.get(...path)), normal(at(old, ...path))];
    if (equal(now, stored)) return true;
    const all = injections.filter((one) => one.criterion === criterion);
    if (all.length === 0 || stored === null || stored === undefined) return false;
    return equal(now, normal(userPart(criterion, stored, path, provenance, all)));
  });
}

/** The API server stores empty values as absent. */
function isAbsent(value: Json | undefined, { isUnset }: Criterion): boolean {
  if (value === undefined || value === null || value === "") return true;
  if (typeof value === "object") return Object.keys(value).length === 0;
  return isUnset?.(value) ?? false;
}

function textsOf({ set, added }: Origin, old: JsonObject, { combined }: Criterion): string[] {
  return [
    ...set.map((place) => `${place} ${canonical(atPointer(old, place))}`),
    ...Object.entries(added).flatMap(([list, elements]) =>
      (combined === true ? [elements] : elements).map((one) => `${list} ${canonical(one)}`),
    ),
  ];
}

/** A policy of another namespace has injected nothing here, regardless of the annotation. */
function exists({ kind, namespace, name }: PolicyRef, view: View, here: string): boolean {
  if (namespace !== undefined && namespace !== here) return false;
  const found = [clusterPodSchedulingPolicy, podSchedulingPolicy].find((one) => one.kind === kind);
  return found !== undefined && view.get(kindResource(found), namespace ?? "", name) !== undefined;
}

function restoredFinding(policy: PolicyRef, { text }: Criterion, path: Path): Finding {
  return { policy, rule: "restore", path, outcome: "applied", message: `${text} restored` };
}

/**
 * Restores a stored list if the edits since a mark left another one of the same elements, or of the same meaning: that
 * would be another template, and roll out. After a reapply only the order is kept: the rest is as in a new object.
 */
export function keepStoredLists(
  { draft, spec }: PlacementContext,
  old: JsonObject,
  since: number,
  same: "order" | "meaning",
): void {
  const edited = draft.edits.slice(since).map(({ path }) => path);
  for (const criterion of CRITERIA) {
    if (criterion.list === undefined) continue;
    const path = fieldOf(criterion, spec);
    if (!edited.some((one) => startsWith(one, path) || startsWith(path, one))) continue;
    const [now, stored] = [draft.get(...path), at(old, ...path)];
    if (!Array.isArray(now) || !Array.isArray(stored) || equal(now, stored)) continue;
    if (![now, stored].every((list) => readableElements(list, listRoom())?.length === list.length)) continue;
    // With another nodeSelector the template is another one anyway.
    const judging = (criterion.judgedBy ?? []).map((field) => [...spec, field]);
    const podSpec = draft.changed(judging) ? undefined : draft.get(...spec);
    const meaning = (list: readonly Json[]) =>
      (same === "meaning" ? criterion.listMeaning?.(list, podSpec) : undefined) ?? unordered(list, criterion);
    if (meaning(now) === meaning(stored)) draft.set(path, stored, undefined);
  }
}

/** One string for lists that differ in the order of their elements; for combined ones, also of their items. */
function unordered(list: readonly Json[], { combined }: Criterion): string {
  const items = (value: Json | undefined) => (Array.isArray(value) ? value.map(canonical).sort() : value);
  const text = (one: Json) =>
    combined === true && isObject(one)
      ? canonical(Object.fromEntries(Object.entries(one).map(([name, value]) => [name, items(value)])))
      : canonical(one);
  return canonical(list.map(text).sort());
}

function startsWith(path: Path, start: Path): boolean {
  return start.every((step, i) => step === path[i]);
}
