import type { AdmissionRequest } from "../../../core/decision/request.ts";
import type { JsonObject } from "../../../core/json.ts";
import { NAMESPACE_NAME } from "../../../core/kubernetes/object.ts";
import {
  type CompiledSelector,
  labelValue,
  whyNot,
} from "../../../core/kubernetes/selectors/label-selector.ts";
import type { TraceEntry } from "../../../core/module/module.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import type { Match } from "./select.ts";

/** The labels that selectors match: of the namespace, and of the pod or the template. */
export interface SelectedLabels {
  readonly namespace: JsonObject;
  readonly pod: JsonObject | undefined;
  /** The namespace itself, where it is known. */
  readonly object?: JsonObject | undefined;
}

/** Why a policy did, or did not, select an object: `namespace shop (environment=prod), template role=main`. */
export function traceOf(
  policy: PlacementPolicy,
  match: Match,
  request: AdmissionRequest,
  { namespace, pod, object = {} }: SelectedLabels,
): TraceEntry {
  const { ref } = policy;
  if (match === "no") return { policy: ref, applies: "not", why: whyNotOf(policy, { namespace, pod }) };
  if (typeof match === "object" && "skipped" in match)
    return { policy: ref, applies: "not", why: match.skipped };
  if (match !== "yes") return { policy: ref, applies: "failed", why: match.why };
  // The name of the namespace is shown anyway.
  const labels = found(policy.namespaceSelector, namespace).filter((one) => !one.startsWith(NAMESPACE_NAME));
  const where = [...new Set([...labels, ...(policy.fromNamespace?.describe(object) ?? [])])];
  const what = request.resource.group === "" && request.resource.resource === "pods" ? "pod" : "template";
  const which = found(policy.podSelector, pod);
  const inside = `namespace ${request.namespace}${where.length === 0 ? "" : ` (${where.join(", ")})`}`;
  return {
    policy: ref,
    applies: "applies",
    why: `${inside}, ${which.length === 0 ? `every ${what}` : `${what} ${which.join(", ")}`}`,
  };
}

/** The pod's labels come first, as in the match. */
function whyNotOf(
  { ref, podSelector, namespaceSelector }: PlacementPolicy,
  { namespace, pod }: SelectedLabels,
): string {
  const byPod = podSelector === undefined ? undefined : whyNot(podSelector, pod);
  if (byPod !== undefined) return `podSelector: ${byPod}`;
  // A namespaced policy has no namespaceSelector.
  if (ref.namespace !== undefined) return `the policy is in namespace ${ref.namespace}`;
  const byNamespace = namespaceSelector === undefined ? undefined : whyNot(namespaceSelector, namespace);
  return `namespaceSelector: ${byNamespace ?? "selects nothing"}`;
}

/** The labels that a selector names, as they are; a key of two expressions once. */
function found(selector: CompiledSelector | undefined, labels: JsonObject | undefined): string[] {
  if (selector?.kind !== "requirements") return [];
  const keys = new Set(selector.requirements.map(({ key }) => key));
  return [...keys].map((key) => {
    const value = labelValue(labels, key);
    return value === undefined ? `no ${key}` : `${key}=${value}`;
  });
}
