import { canonical, isObject, type Json, type JsonObject, stringAt } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { compileSelector, matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Installation } from "../../../core/module/installation.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import { protectedNamespaces } from "../../../core/registration/protected.ts";
import type { View } from "../../../core/view/view.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";
import { NAMESPACE_NAME } from "../policy/policy.ts";

/**
 * A webhook configuration is one object, which etcd holds up to 1.5 MB: of so many names, each of up to 63 characters, it has a
 * fifth. A cluster with more namespaces under closed policies than this is better served by a policy for all.
 */
const MOST_NAMES = 4_000;

/** A stored policy, as far as it decides which hooks there are. */
export interface WrittenPolicy {
  /** Absent for a policy of the whole cluster. */
  readonly namespace: string | undefined;
  readonly spec: JsonObject;
}

/** The namespaces that some policies are about. */
export interface Reach {
  /** All of them, those included that are yet to come. */
  readonly everywhere: boolean;
  /** Sorted, so that equal policies give equal hooks. */
  readonly names: readonly string[];
}

/**
 * The stored policies of both kinds whose spec is such. Hooks are made from the view alone, anew with every change, and of ten
 * thousand policies hardly any is closed: so each is only looked at, and nothing is made of it.
 */
export function policiesIn(view: View, wanted: (spec: JsonObject) => boolean): WrittenPolicy[] {
  const found: WrittenPolicy[] = [];
  for (const kind of [clusterPodSchedulingPolicy, podSchedulingPolicy]) {
    const namespaced = kind.scope === "Namespaced";
    for (const object of view.list(kindResource(kind))) {
      const spec = object["spec"];
      if (!isObject(spec) || !wanted(spec)) continue;
      found.push({
        namespace: namespaced ? (stringAt(object, "metadata", "namespace") ?? "default") : undefined,
        spec,
      });
    }
  }
  return found;
}

/** Which namespaces the policies select now, as far as they can be read; never the control plane's or usher's own. */
export function reachOf(policies: readonly WrittenPolicy[], view: View, installation: Installation): Reach {
  const names = new Set<string>();
  const selectors = new Map<string, Json>();
  for (const { namespace, spec } of policies) {
    const { podSelector, namespaceSelector } = spec;
    // Absent selects nothing; one that can't be read may mean any pod.
    if (podSelector === undefined || podSelector === null) continue;
    if (namespace !== undefined) names.add(namespace);
    else if (isObject(namespaceSelector)) selectors.set(textOf(namespaceSelector), namespaceSelector);
  }
  const compiled = [...selectors.values()].map((selector) => compileSelector(selector, []).selector);
  if (compiled.some(({ kind }) => kind === "everything")) return { everywhere: true, names: [] };
  const apart = new Set(protectedNamespaces(installation));
  if (compiled.length > 0) {
    for (const namespace of view.list("namespaces")) {
      const name = stringAt(namespace, "metadata", "name") ?? "";
      if (names.has(name) || apart.has(name)) continue;
      const labels: JsonObject = { ...labelsOf(namespace), [NAMESPACE_NAME]: name };
      if (compiled.some((selector) => matches(selector, labels))) names.add(name);
    }
  }
  const sorted = [...names].filter((name) => !apart.has(name)).sort();
  return { everywhere: false, names: sorted.slice(0, MOST_NAMES) };
}

/** Many policies share a selector, and what is stored never changes in place: each is spelled out once. */
const texts = new WeakMap<JsonObject, string>();

function textOf(selector: JsonObject): string {
  const known = texts.get(selector);
  if (known !== undefined) return known;
  const text = canonical(selector);
  texts.set(selector, text);
  return text;
}
