import type { JsonObject } from "../../core/json.ts";
import { isObject } from "../../core/json.ts";
import { matches, matchesPartly, whyNot } from "../../core/kubernetes/label-selector.ts";
import { labelsOf } from "../../core/kubernetes/object.ts";
import type { Context } from "../../core/module.ts";
import type { Need } from "../../core/need.ts";
import type { SelectorIndex } from "../../core/selector-index.ts";
import { traceOf } from "./explain.ts";
import { comparePolicies, NAMESPACE_NAME, type PlacementPolicy } from "./policy.ts";

/** Labels of a namespace. Where the namespace itself is not known, its name still is. */
interface NamespaceLabels {
  readonly labels: JsonObject;
  readonly known: boolean;
}

interface Unclear {
  readonly policy: PlacementPolicy;
  readonly why: string;
  readonly because: "namespace" | "policy";
}

export interface Selection {
  /** Those that want the object, in the order in which they apply. */
  readonly wanting: readonly PlacementPolicy[];
  /** Those of which it can't be said, with the reason. */
  readonly unclear: readonly Unclear[];
}

/** What one policy says to one object. */
export type Match =
  | "yes"
  | { readonly no: string }
  | { readonly unclear: string; readonly because: "namespace" | "policy" };

export function matchPolicy(
  policy: PlacementPolicy,
  pod: JsonObject | undefined,
  namespace: NamespaceLabels,
): Match {
  const { podSelector, namespaceSelector, broken } = policy;
  if (podSelector !== undefined && !matches(podSelector, pod)) {
    return { no: `podSelector: ${whyNot(podSelector, pod) ?? "selects nothing"}` };
  }
  if (namespaceSelector !== undefined) {
    const inside = namespace.known
      ? matches(namespaceSelector, namespace.labels)
        ? "yes"
        : "no"
      : matchesPartly(namespaceSelector, namespace.labels, (key) => key === NAMESPACE_NAME);
    if (inside === "no") {
      return { no: `namespaceSelector: ${whyNot(namespaceSelector, namespace.labels) ?? "selects nothing"}` };
    }
    if (inside === "unknown") {
      return { unclear: "the labels of the namespace are not known", because: "namespace" };
    }
  }
  return broken === undefined ? "yes" : { unclear: `the policy is not valid: ${broken}`, because: "policy" };
}

/**
 * The policies that want an object. The index gives candidates; with `trace` every policy is asked, and the answer is the same.
 * A namespace that the view does not have is asked for, but only where a policy's answer hangs on it.
 */
export function select(
  index: SelectorIndex<PlacementPolicy>,
  pod: JsonObject | undefined,
  context: Context,
): Selection | { readonly need: readonly Need[] } {
  const { request, view, facts, trace } = context;
  const need: Need = { get: { resource: "namespaces", name: request.namespace } };
  const stored = view.get("namespaces", "", request.namespace);
  const fact = stored === undefined ? facts.of(need) : undefined;
  const found =
    stored ?? (fact !== undefined && "found" in fact && isObject(fact.found) ? fact.found : undefined);
  const namespace: NamespaceLabels =
    found === undefined
      ? { known: false, labels: { [NAMESPACE_NAME]: request.namespace } }
      : { known: true, labels: { ...labelsOf(found), [NAMESPACE_NAME]: request.namespace } };
  const candidates =
    trace === undefined
      ? [
          ...index.candidates({ pod, namespace: namespace.labels }),
          ...(namespace.known ? [] : index.anchoredOn("namespace")),
        ]
      : index.items;
  const wanting = new Set<PlacementPolicy>();
  const unclear = new Map<PlacementPolicy, Unclear>();
  let asks = false;
  for (const policy of candidates) {
    const match = matchPolicy(policy, pod, namespace);
    if (match === "yes") wanting.add(policy);
    else if ("unclear" in match) {
      unclear.set(policy, { policy, why: match.unclear, because: match.because });
      // A broken policy asks as well: its readable part may turn out to mean other namespaces.
      asks ||= match.because === "namespace";
    }
    trace?.(traceOf(policy, match, request, { namespace: namespace.labels, pod }));
  }
  if (asks && stored === undefined && fact === undefined) return { need: [need] };
  return {
    wanting: [...wanting].sort(comparePolicies),
    unclear: [...unclear.values()].sort((a, b) => comparePolicies(a.policy, b.policy)),
  };
}
