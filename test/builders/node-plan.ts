import type { Assembly } from "../../src/core/evaluate/assembly.ts";
import { type Fact, Facts, type Need } from "../../src/core/evaluate/need.ts";
import { at, type JsonObject, stringAt } from "../../src/core/json.ts";
import type { ReconcileResult } from "../../src/core/module/reconciler.ts";
import type { Change } from "../../src/core/view/view.ts";
import { nodeLabelsReconciler as reconciler } from "../../src/modules/node-labels/reconcile/reconciler.ts";
import { node, rule } from "./node.ts";

export const NOW = 1_700_000_000_000;
export const RULES = "labels.node-labels.openshift.io";
export const OWNED = "ownedlabels.node-labels.openshift.io";
export const KEY = "test.openshift.io/foo1";

export const set = (name: string, patterns: string[], labels: JsonObject, more: JsonObject = {}) =>
  rule(name, { nodeNamePatterns: patterns, labels, ...more });
export const right = (name: string, value = "1") => node(name, { [KEY]: value });
export const stored = (object: JsonObject, version = "7"): JsonObject => ({
  ...object,
  metadata: { ...(object["metadata"] as JsonObject), resourceVersion: version },
});

/** Which keys a change touches, in an assembly that takes it in. */
export function keysOf(assembly: Assembly, change: Change): string[] {
  const [real] = assembly.apply([change]);
  return real === undefined ? [] : [...reconciler.keys(real, assembly.view, assembly)];
}

/** The plan of a key, with these objects in the API server; what is `failing` can't be read. */
export function planOf(
  assembly: Assembly,
  key: string,
  objects: readonly JsonObject[],
  {
    failing = [],
    ...more
  }: { now?: number; failure?: (key: string) => string | undefined; failing?: readonly string[] } = {},
): ReconcileResult & { asked: number } {
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
    const result = reconciler.plan(key, { view: assembly.view, facts, now: NOW, assembly, ...more });
    if (!("need" in result)) return { ...result, asked };
    for (const need of result.need) facts.set(need, found(need));
    asked += result.need.length;
  }
}
