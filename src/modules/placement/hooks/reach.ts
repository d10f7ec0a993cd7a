import type { Installation } from "../../../core/installation/installation.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { labelsOf, NAMESPACE_NAME } from "../../../core/kubernetes/object.ts";
import { type CompiledSelector, matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import { protectedNamespaces } from "../../../core/module/protected.ts";
import type { View } from "../../../core/view/view.ts";
import type { PlacementPolicy } from "../policy/policy.ts";

/**
 * A webhook configuration is one object, limited by etcd to 1.5 MB: 4,000 names of up to 63 characters take a fifth of
 * it. A cluster with more namespaces under fail-closed policies is better served by a policy for all.
 */
const MOST_NAMES = 4_000;

/** The namespaces that some policies are about. */
export interface Reach {
  /** All of them, including future ones. */
  readonly everywhere: boolean;
  /** Sorted, so that equal policies give equal hooks. */
  readonly names: readonly string[];
}

/** The namespaces that these fail-closed policies select now; never the control plane's or usher's own. */
export function reachOf(policies: readonly PlacementPolicy[], view: View, installation: Installation): Reach {
  const names = new Set<string>();
  // Many policies share a selector: each is compared with the namespaces once.
  const selectors = new Map<string, CompiledSelector>();
  for (const { ref, namespaceSelector, namespaceSelectorKey } of policies) {
    if (ref.namespace !== undefined) names.add(ref.namespace);
    else if (namespaceSelector !== undefined && namespaceSelectorKey !== undefined)
      selectors.set(namespaceSelectorKey, namespaceSelector);
  }
  const compiled = [...selectors.values()];
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
