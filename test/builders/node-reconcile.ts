import { type Fact, Facts, type Need } from "../../src/core/decision/need.ts";
import { at, type JsonObject, stringAt } from "../../src/core/json.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import type { ReconcileResult } from "../../src/core/module/reconciler.ts";
import type { Change } from "../../src/core/view/view.ts";
import type { NodeLabelsKey } from "../../src/modules/node-labels/reconcile/keys.ts";
import { nodeLabelsReconciler as reconciler } from "../../src/modules/node-labels/reconcile/reconciler.ts";
import type { NodeLabelsState } from "../../src/modules/node-labels/reconcile/state.ts";
import { node, rule } from "./node.ts";

export const NOW = 1_700_000_000_000;
export const RULES = "labels.node-labels.openshift.io";
export const OWNED = "ownedlabels.node-labels.openshift.io";
export const KEY = "test.openshift.io/foo1";
export const LEDGER: NodeLabelsKey = { kind: "ledger" };
export const SWEEP: NodeLabelsKey = { kind: "sweep" };

export const set = (name: string, patterns: string[], labels: JsonObject, more: JsonObject = {}) =>
  rule(name, { nodeNamePatterns: patterns, labels, ...more });
export const right = (name: string, value = "1") => node(name, { [KEY]: value });
export const stored = (object: JsonObject, version = "7"): JsonObject => ({
  ...object,
  metadata: { ...(object["metadata"] as JsonObject), resourceVersion: version },
});

const states = new WeakMap<Assembly, NodeLabelsState>();

/** The reconciler state that the shell holds; one per assembly of a test. */
export function stateOf(assembly: Assembly): NodeLabelsState {
  const state = states.get(assembly) ?? reconciler.initialState();
  states.set(assembly, state);
  return state;
}

/** The keys that a change affects, in an assembly that applies the change. */
export function keysOf(assembly: Assembly, change: Change): NodeLabelsKey[] {
  const [real] = assembly.apply([change]);
  const context = { view: assembly.view, assembly };
  return real === undefined ? [] : [...reconciler.keys(real, stateOf(assembly), context)];
}

/** The keys that a new leader starts with. */
export function initialKeysOf(assembly: Assembly): NodeLabelsKey[] {
  return [...(reconciler.initialKeys?.(stateOf(assembly), { view: assembly.view, assembly }) ?? [])];
}

export interface Reconciling {
  readonly now?: number;
  readonly failure?: (key: NodeLabelsKey) => string | undefined;
  /** Resources that can't be read. */
  readonly failing?: readonly string[];
}

/** The result of a key, given these objects in the API server, and how many facts it took. */
export function reconciled(
  assembly: Assembly,
  key: NodeLabelsKey,
  objects: readonly JsonObject[],
  { failing = [], ...more }: Reconciling = {},
): ReconcileResult<NodeLabelsKey> & { readonly asked: number } {
  const facts = new Facts();
  const found = (need: Need): Fact => {
    if (!("get" in need)) return { failed: "not expected" };
    const { name, namespace, resource } = need.get;
    if (failing.includes(resource)) return { failed: "503" };
    const object = objects.find(
      (one) =>
        at(one, "metadata", "name") === name &&
        (stringAt(one, "metadata", "namespace") ?? "") === (namespace ?? ""),
    );
    return object === undefined ? { absent: "NotFound" } : { found: object, complete: true };
  };
  for (let asked = 0; ; ) {
    const context = { view: assembly.view, facts, now: NOW, assembly, ...more };
    const result = reconciler.reconcile(key, stateOf(assembly), context);
    if (!("need" in result)) return { ...result, asked };
    for (const need of result.need) facts.set(need, found(need));
    asked += result.need.length;
  }
}
