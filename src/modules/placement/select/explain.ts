import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import type { JsonObject } from "../../../core/json.ts";
import {
  type CompiledSelector,
  labelValue,
  whyNot,
} from "../../../core/kubernetes/selectors/label-selector.ts";
import type { TraceEntry } from "../../../core/module/module.ts";
import { NAMESPACE_NAME, type PlacementPolicy } from "../policy/policy.ts";
import type { Match } from "./select.ts";

/** What selectors look at: the labels of the namespace, and of the pod or the template. */
export interface Looked {
  readonly namespace: JsonObject;
  readonly pod: JsonObject | undefined;
}

/** Why a policy did, or did not, want an object: `namespace shop (environment=prod), template role=main`. */
export function traceOf(
  policy: PlacementPolicy,
  match: Match,
  request: AdmissionRequest,
  { namespace, pod }: Looked,
): TraceEntry {
  const { ref } = policy;
  if (match === "no") return { policy: ref, applies: "not", why: whyNotOf(policy, { namespace, pod }) };
  if (match !== "yes") return { policy: ref, applies: "failed", why: match.why };
  // The name of the namespace is said anyway.
  const where = found(policy.namespaceSelector, namespace).filter((one) => !one.startsWith(NAMESPACE_NAME));
  const what = request.resource.group === "" && request.resource.resource === "pods" ? "pod" : "template";
  const which = found(policy.podSelector, pod);
  const inside = `namespace ${request.namespace}${where.length === 0 ? "" : ` (${where.join(", ")})`}`;
  return {
    policy: ref,
    applies: "applies",
    why: `${inside}, ${which.length === 0 ? `every ${what}` : `${what} ${which.join(", ")}`}`,
  };
}

/** The pod's labels are looked at first, as they are when it is decided. */
function whyNotOf({ podSelector, namespaceSelector }: PlacementPolicy, { namespace, pod }: Looked): string {
  const byPod = podSelector === undefined ? undefined : whyNot(podSelector, pod);
  if (byPod !== undefined) return `podSelector: ${byPod}`;
  const byNamespace = namespaceSelector === undefined ? undefined : whyNot(namespaceSelector, namespace);
  return `namespaceSelector: ${byNamespace ?? "selects nothing"}`;
}

/** What a selector asked about, as it was found. Of a key that two expressions name, once. */
function found(selector: CompiledSelector | undefined, labels: JsonObject | undefined): string[] {
  if (selector?.kind !== "requirements") return [];
  const keys = new Set(selector.requirements.map(({ key }) => key));
  return [...keys].map((key) => {
    const value = labelValue(labels, key);
    return value === undefined ? `no ${key}` : `${key}=${value}`;
  });
}
