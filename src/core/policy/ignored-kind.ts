import type { NeedMore } from "../evaluate/decision.ts";
import { at, equal, isObject, type JsonObject, listAt } from "../json.ts";
import { nameOf, namespaceOf } from "../kubernetes/object.ts";
import type { Declarations, Module } from "../module/module.ts";
import {
  type KeysContext,
  liveObject,
  type ReconcileContext,
  type ReconcileResult,
  type Reconciler,
} from "../module/reconciler.ts";
import {
  configuredValues,
  holds,
  moduleEnabled,
  type SettingCondition,
} from "../module/setting-condition.ts";
import type { Change } from "../view/view.ts";
import { conditionOf, observed } from "./condition.ts";
import { type CustomResource, type Kind, kindResource } from "./kind.ts";

/** The configuration that decides whether a kind counts: an assembly has it, and so has the context of an evaluation. */
export type ConfiguredKind = Pick<Declarations, "installation" | "gates">;

/** Why usher ignores all objects of a kind in this configuration. A kind of another owner has its effect elsewhere. */
export function ignoredBecause(
  { kind, registered = [], takeOver }: CustomResource,
  { installation, gates }: ConfiguredKind,
): string | undefined {
  if (takeOver === "never") return undefined;
  const values = configuredValues(installation, gates);
  const unmet = registered.find((condition) => !holds([condition], values));
  return unmet === undefined
    ? undefined
    : `usher ignores this ${kind}: ${describeCondition(unmet)} in the configuration`;
}

function describeCondition(condition: SettingCondition): string {
  if ("listed" in condition) return `it is not in spec.${condition.listed.join(".")}`;
  return `spec.${condition.setting.join(".")} is not ${condition.equals}`;
}

/** The kinds of a module that is off: their objects are read, so that they say it, and do nothing. */
export function ignoredKinds({ name, kinds }: Module): Kind<never>[] {
  return kinds
    .filter(({ takeOver }) => takeOver !== "never")
    .map(({ check: _check, refused: _refused, ...kind }) => ({
      ...kind,
      ignored: true,
      // Settings of a module have no `enabled`: of a module that is off, nothing else needs to be known.
      registered: [{ ...moduleEnabled(name), default: false }],
      prepare: () => ({ policy: undefined, problems: [] }),
    }));
}

type IgnoredKey = {
  readonly kind: "ignored";
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
};

/** Replaces the status that a module left in its policies: what it says of an effect was true before the configuration changed. */
export function ignoredPoliciesReconciler(kinds: readonly Kind[]): Reconciler<IgnoredKey> {
  const byResource = new Map(kinds.filter(hasStatus).map((kind) => [kindResource(kind), kind]));
  const why = (resource: string, { assembly }: KeysContext): string | undefined => {
    const kind = byResource.get(resource);
    return kind === undefined || assembly === undefined ? undefined : ignoredBecause(kind, assembly);
  };
  const keyOf = ({ resource, namespace, name }: Omit<Change, "object">): IgnoredKey => ({
    kind: "ignored",
    resource,
    namespace,
    name,
  });
  return {
    initialState: () => undefined,
    initialKeys: function* (_state, context) {
      for (const resource of byResource.keys()) {
        if (why(resource, context) === undefined) continue;
        for (const object of context.view.list(resource))
          yield keyOf({ resource, namespace: namespaceOf(object), name: nameOf(object) });
      }
    },
    keys: (change, _state, context) =>
      change.object === undefined || why(change.resource, context) === undefined ? [] : [keyOf(change)],
    reconcile: (key, _state, context) => {
      const kind = byResource.get(key.resource);
      const message = why(key.resource, context);
      return kind === undefined || message === undefined
        ? { writes: [] }
        : reconcileIgnored(key, kind, message, context);
    },
  };
}

function reconcileIgnored(
  { resource, namespace, name }: IgnoredKey,
  kind: Kind,
  message: string,
  { facts, now }: Pick<ReconcileContext, "facts" | "now">,
): ReconcileResult<never> | NeedMore {
  const of = { resource, ...(namespace === "" ? {} : { namespace }), name };
  const live = liveObject(of, facts);
  if (live === undefined) return { writes: [] };
  if ("need" in live) return live;
  const { object, resourceVersion } = live;
  const before = isObject(object["status"]) ? object["status"] : {};
  const written = at(object, "metadata", "generation");
  const generation = typeof written === "number" ? written : undefined;
  const others = kind.othersStatus?.(before) ?? {};
  const ignored = { type: "Ignored", holds: true, reason: "SwitchedOff", message };
  const status: JsonObject = {
    ...others,
    ...observed(generation),
    conditions: [...listAt(others, "conditions"), conditionOf(ignored, generation, before, now)],
  };
  return equal(status, before) ? { writes: [] } : { writes: [{ status, of, resourceVersion }] };
}

function hasStatus({ standing, versions }: Kind): boolean {
  return standing === "resource" && versions.some(({ status }) => status !== undefined);
}
