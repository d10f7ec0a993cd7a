import type { NeedMore } from "../../../core/decision/decision.ts";
import { resourceName } from "../../../core/decision/request.ts";
import { at, equal, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Figure } from "../../../core/module/metric.ts";
import {
  type KeysContext,
  liveObject,
  type ReconcileContext,
  type ReconcileResult,
  type Reconciler,
} from "../../../core/module/reconciler.ts";
import { checkObject } from "../../../core/policy/check.ts";
import type { View } from "../../../core/view/view.ts";
import { missingGroup } from "../check/check-override.ts";
import { isIn } from "../check/group-checks.ts";
import { violations } from "../check/violations.ts";
import { FALLBACK_READS, fallbackInForce, withoutFallback } from "../fallback/in-force.ts";
import { CONTROL_PLANE, type Group } from "../groups/group.ts";
import { type Groups, groupsIn } from "../groups/groups.ts";
import { isActive, readOverride } from "../groups/override.ts";
import { OVERRIDES, POLICIES, SCHEDULERS } from "../groups/policy.ts";
import { policy } from "../kinds.ts";
import { OVERRIDE_ACTIVE, PROTECTED_NODES, RUNNING_VIOLATIONS } from "../metrics.ts";
import { isOn, managesTaint } from "../settings.ts";
import { needsTaint, reconcileTaint } from "./control-plane-taint.ts";
import { statusOfOverride } from "./override-status.ts";
import { statusOfPolicy } from "./policy-status.ts";

export type GuardKey =
  | { readonly kind: "policy"; readonly name: string }
  | { readonly kind: "override"; readonly name: string }
  /** All groups: their nodes and the pods that run there. */
  | { readonly kind: "scan" }
  | { readonly kind: "taint"; readonly name: string };

/** Pods are created and deleted all day; a report may be this old. */
const SCAN_SECONDS = 60;

const FALLBACK_RESOURCES: ReadonlySet<string> = new Set(FALLBACK_READS.map(resourceName));

const NOTHING: ReconcileResult<never> = { writes: [] };

/** Keeps statuses current, reports running violations, and sets the control plane's taint if configured. */
export const guardReconciler: Reconciler<GuardKey, GuardState> = {
  initialState,
  initialKeys: function* (_state, context) {
    if (!isActiveHere(context)) return;
    yield { kind: "scan" };
    yield* allKeys(context);
  },
  keys: ({ resource, name, object }, state, context) => {
    if (!isActiveHere(context)) return [];
    if (resource === OVERRIDES) {
      if (object !== undefined) return [{ kind: "override", name }, ...policyKeys(context.view)];
      state.active.delete(name);
      return policyKeys(context.view);
    }
    // The status says whether the fallback is in force.
    if (FALLBACK_RESOURCES.has(resource)) return policyKeys(context.view);
    if (resource === POLICIES || resource === SCHEDULERS) return [{ kind: "scan" }, ...allKeys(context)];
    return resource === "nodes" && object !== undefined ? taintKeys([object], context) : [];
  },
  reconcile: (key, state, context) => {
    if (!isActiveHere(context)) return NOTHING;
    const { view, assembly, now } = context;
    const groups = groupsIn(view, assembly.installation);
    switch (key.kind) {
      case "policy":
        return reconcilePolicy(key.name, groups, context, assembly);
      case "override":
        return reconcileOverride(key.name, state, context);
      case "scan": {
        state.counts = new Map(groups.at(view, now).map((group) => [group.name, countsOf(group, view)]));
        return { writes: [], enqueue: policyKeys(view), requeueAfter: SCAN_SECONDS };
      }
      case "taint": {
        const { mastersSchedulable } = groups;
        const group = groups.at(view, undefined).find(({ name }) => name === CONTROL_PLANE);
        if (mastersSchedulable === undefined || group === undefined) return NOTHING;
        return reconcileTaint(key.name, group, mastersSchedulable, context);
      }
    }
  },
  figures: ({ counts, active }) => [
    ...[...counts].flatMap(([group, { nodes, violations: found }]): Figure[] => [
      { metric: PROTECTED_NODES, labels: { group }, value: nodes },
      { metric: RUNNING_VIOLATIONS, labels: { group }, value: found },
      {
        metric: OVERRIDE_ACTIVE,
        labels: { group },
        value: [...active.values()].filter((one) => one === group).length,
      },
    ]),
  ],
};

type Active = KeysContext & { readonly assembly: NonNullable<KeysContext["assembly"]> };

function isActiveHere(context: KeysContext): context is Active {
  return context.assembly !== undefined && isOn(context.assembly.gates);
}

function allKeys(context: Active): GuardKey[] {
  const overrides = [...context.view.list(OVERRIDES)].map((one) => ({
    kind: "override" as const,
    name: nameOf(one),
  }));
  return [...policyKeys(context.view), ...overrides, ...taintKeys(context.view.list("nodes"), context)];
}

function policyKeys(view: View): GuardKey[] {
  return [...view.list(POLICIES)].map((one) => ({ kind: "policy", name: nameOf(one) }));
}

/** Nodes with a deviating taint. Without a Scheduler taints stay. */
function taintKeys(nodes: Iterable<JsonObject>, { view, assembly: { installation } }: Active): GuardKey[] {
  if (!managesTaint(installation)) return [];
  const groups = groupsIn(view, installation);
  const { mastersSchedulable } = groups;
  const group = groups.at(view, undefined).find(({ name }) => name === CONTROL_PLANE);
  if (mastersSchedulable === undefined || group === undefined) return [];
  return [...nodes]
    .filter((node) => needsTaint(node, group, mastersSchedulable, view))
    .map((node) => ({ kind: "taint", name: nameOf(node) }));
}

function countsOf(group: Group, view: View) {
  const nodes = [...view.list("nodes")].filter((node) => isIn(group, node)).length;
  return { nodes, violations: violations(group, view).length };
}

function reconcilePolicy(
  name: string,
  groups: Groups,
  { view, facts, now }: ReconcileContext<GuardKey>,
  assembly: Active["assembly"],
): ReconcileResult<never> | NeedMore {
  const { installation } = assembly;
  const live = liveObject({ resource: POLICIES, name }, facts);
  if (live === undefined) return NOTHING;
  if ("need" in live) return live;
  const { object } = live;
  const reported = groups.at(view, now).map((group) => {
    const fallback = fallbackInForce(group, view, installation);
    const missing =
      fallback || group.effectiveMode !== "Enable"
        ? undefined
        : "its policies are not stored as they should be";
    const unguarded = withoutFallback(group, installation) ?? missing;
    return { ...group, ...countsOf(group, view), fallback, unguarded };
  });
  const state = {
    name,
    generation: generationOf(object),
    problems: checkObject(policy, object, view, assembly),
    groups,
    reported,
    managesTaint: managesTaint(installation),
  };
  return statusWrite({ resource: POLICIES, name }, object, (before) => statusOfPolicy(state, before, now));
}

function reconcileOverride(
  name: string,
  state: GuardState,
  { facts, now, view, assembly }: ReconcileContext<GuardKey> & Active,
): ReconcileResult<GuardKey> | NeedMore {
  const live = liveObject({ resource: OVERRIDES, name }, facts);
  if (live === undefined) return NOTHING;
  if ("need" in live) return live;
  const { object } = live;
  const override = readOverride(object);
  if (override !== undefined && isActive(override, now)) state.active.set(name, override.group);
  else state.active.delete(name);
  const before = statusBefore(object);
  const { status, requeueAfter } = statusOfOverride(
    override,
    generationOf(object),
    before,
    now,
    override === undefined ? undefined : missingGroup(override.group, view, assembly.installation),
  );
  return {
    ...statusWrite({ resource: OVERRIDES, name }, object, () => status),
    enqueue: [{ kind: "scan" }],
    ...(requeueAfter === undefined ? {} : { requeueAfter }),
  };
}

function statusWrite(
  of: { readonly resource: string; readonly name: string },
  object: JsonObject,
  statusOf: (before: JsonObject) => JsonObject,
): ReconcileResult<never> {
  const before = statusBefore(object);
  const status = statusOf(before);
  if (equal(status, before)) return NOTHING;
  return { writes: [{ status, of, resourceVersion: stringAt(object, "metadata", "resourceVersion") ?? "" }] };
}

function statusBefore(object: JsonObject): JsonObject {
  return isObject(object["status"]) ? object["status"] : {};
}

function generationOf(object: JsonObject): number | undefined {
  const generation = at(object, "metadata", "generation");
  return typeof generation === "number" ? generation : undefined;
}

/** The leader's last observation of a group. */
export interface GroupCounts {
  readonly nodes: number;
  readonly violations: number;
}

export interface GuardState {
  /** By group. */
  counts: ReadonlyMap<string, GroupCounts>;
  /** By override: the group that it weakens now. */
  readonly active: Map<string, string>;
}

export function initialState(): GuardState {
  return { counts: new Map(), active: new Map() };
}
