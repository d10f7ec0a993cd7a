import type { Need } from "../../../core/decision/need.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import type { JsonObject } from "../../../core/json.ts";
import { isObject, own } from "../../../core/json.ts";
import { labelsOf, NAMESPACE_NAME } from "../../../core/kubernetes/object.ts";
import { matches, matchesPartly } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Context, TraceEntry } from "../../../core/module/module.ts";
import type { PolicyIndex } from "../../../core/policy/policy-index.ts";
import { comparePolicies, type PlacementPolicy, withCriteria } from "../policy/policy.ts";
import { traceOf } from "./explain.ts";

/** Labels of a namespace. If the namespace is unknown, its name is still known. */
interface NamespaceLabels {
  readonly labels: JsonObject;
  readonly known: boolean;
  /** The namespace itself. */
  readonly object?: JsonObject | undefined;
}

interface Unclear {
  readonly policy: PlacementPolicy;
  readonly why: string;
  readonly because: "namespace" | "policy";
}

export interface Selection {
  /** Policies that select the object, in the order in which they apply. */
  readonly wanting: readonly PlacementPolicy[];
  /** Policies for which that can't be determined, with the reason. */
  readonly unclear: readonly Unclear[];
  /** Policies that select the object and take values from its namespace, which has none for them. */
  readonly withoutValue: readonly { readonly policy: PlacementPolicy; readonly why: string }[];
}

/** Whether one policy selects one object. */
export type Match =
  | "yes"
  | "no"
  | Pick<Unclear, "why" | "because">
  /** The namespace has no value for the policy. */
  | { readonly skipped: string };

export function matchPolicy(
  policy: PlacementPolicy,
  pod: JsonObject | undefined,
  namespace: NamespaceLabels,
): Match {
  const { podSelector, namespaceSelector, broken } = policy;
  if (podSelector !== undefined && !matches(podSelector, pod)) return "no";
  if (namespaceSelector !== undefined) {
    const { known, labels } = namespace;
    const inside = known
      ? matches(namespaceSelector, labels)
        ? "yes"
        : "no"
      : matchesPartly(namespaceSelector, labels, (key) => key === NAMESPACE_NAME);
    if (inside === "no") return "no";
    if (inside === "unknown") return { why: "the labels of the namespace are unknown", because: "namespace" };
  }
  if (broken !== undefined) return { why: `the policy is not valid: ${broken}`, because: "policy" };
  return "yes";
}

/** The policy with the values of a namespace; or why it has none there. */
function inNamespace(
  policy: PlacementPolicy,
  { known, object }: NamespaceLabels,
): PlacementPolicy | Exclude<Match, "yes" | "no"> {
  if (policy.fromNamespace === undefined) return policy;
  if (!known) return { why: "the labels of the namespace are unknown", because: "namespace" };
  const resolved = policy.fromNamespace.resolve(object ?? {});
  return "skipped" in resolved ? resolved : withCriteria(policy, resolved.criteria);
}

/**
 * The policies that select an object. The index returns candidates; with `trace` every policy is tried, with the same
 * result. A namespace that is not in the view is fetched, but only if the result depends on it. `exempt` is the reason
 * why a policy does not apply here, regardless of its selectors.
 */
export function select(
  index: PolicyIndex<PlacementPolicy>,
  pod: JsonObject | undefined,
  context: Context,
  exempt: (policy: PlacementPolicy) => string | undefined = () => undefined,
): Selection | { readonly need: readonly Need[] } {
  const { request, view, facts, trace } = context;
  const stored = view.get("namespaces", "", request.namespace);
  const fact = stored === undefined ? facts.of(namespaceNeed(request.namespace)) : undefined;
  const found =
    stored ?? (fact !== undefined && "found" in fact && isObject(fact.found) ? fact.found : undefined);
  const namespace: NamespaceLabels = {
    known: found !== undefined,
    labels: labelsWithName(found, request.namespace),
    object: found,
  };
  const wanting: PlacementPolicy[] = [];
  const unclear: Unclear[] = [];
  const withoutValue: { policy: PlacementPolicy; why: string }[] = [];
  let needsNamespace = false;
  const candidates =
    trace === undefined
      ? index.candidates(request.namespace, { pod, namespace: namespace.labels }, namespace.known)
      : // A trace names them in the order in which they apply.
        [...index.items].sort(comparePolicies);
  for (const policy of candidates) {
    const why = exempt(policy);
    if (why !== undefined) {
      trace?.(exemptTrace(policy, why, request, pod, namespace));
      continue;
    }
    const selected = matchPolicy(policy, pod, namespace);
    const placed = selected === "yes" ? inNamespace(policy, namespace) : selected;
    const match: Match = typeof placed === "object" && "criteria" in placed ? "yes" : placed;
    if (typeof placed === "object" && "criteria" in placed) wanting.push(placed);
    else if (typeof match === "object" && "skipped" in match)
      withoutValue.push({ policy, why: match.skipped });
    else if (match !== "no" && match !== "yes") {
      unclear.push({ policy, ...match });
      // An invalid policy needs it as well: its readable part may turn out to select other namespaces.
      needsNamespace ||= match.because === "namespace";
    }
    trace?.(traceOf(policy, match, request, { namespace: namespace.labels, pod, object: namespace.object }));
  }
  if (needsNamespace && stored === undefined && fact === undefined)
    return { need: [namespaceNeed(request.namespace)] };
  if (wanting.length > 1) wanting.sort(comparePolicies);
  if (unclear.length > 1) unclear.sort((a, b) => comparePolicies(a.policy, b.policy));
  return { wanting, unclear, withoutValue };
}

/** A policy that does not select the object anyway is traced with that reason. */
function exemptTrace(
  policy: PlacementPolicy,
  why: string,
  request: AdmissionRequest,
  pod: JsonObject | undefined,
  namespace: NamespaceLabels,
): TraceEntry {
  const match = matchPolicy(policy, pod, namespace);
  if (match === "no") return traceOf(policy, match, request, { namespace: namespace.labels, pod });
  return { policy: policy.ref, applies: "not", why };
}

function namespaceNeed(name: string): Need {
  return { get: { resource: "namespaces", name } };
}

/** An API server adds the name to the labels, and then nothing is copied. */
function labelsWithName(namespace: JsonObject | undefined, name: string): JsonObject {
  const labels = namespace === undefined ? undefined : labelsOf(namespace);
  return labels !== undefined && own(labels, NAMESPACE_NAME) === name
    ? labels
    : { ...labels, [NAMESPACE_NAME]: name };
}
