import { refOf } from "../../../core/evaluate/assembly.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Kind } from "../../../core/policy/kind.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import type { View } from "../../../core/view/view.ts";
import { NAMESPACE_NAME, preparePolicy } from "../policy/policy.ts";
import type { Effect } from "./status.ts";

/** Whether a policy can select any object, given the current namespaces. Pods change too often to be considered. */
export function effectOf(kind: Kind, object: JsonObject, problems: readonly Problem[], view: View): Effect {
  const no = (reason: string, message: string): Effect => ({ effective: false, reason, message });
  if (problems.some(({ severity }) => severity === "error"))
    return no("Invalid", "the policy is invalid; objects that it selects follow its failurePolicy");
  const { policy } = preparePolicy(object, refOf(kind, object), kind.scope);
  if (policy === undefined) return no("SelectsNothing", "a selector is missing, so nothing is selected");
  if (policy.criteria.length === 0) return no("NoCriteria", "the policy has no scheduling criteria");
  const { namespaceSelector } = policy;
  if (kind.scope === "Cluster" && namespaceSelector !== undefined && view.served("namespaces")) {
    let found = false;
    for (const namespace of view.list("namespaces")) {
      const name = stringAt(namespace, "metadata", "name") ?? "";
      found ||= matches(namespaceSelector, { ...labelsOf(namespace), [NAMESPACE_NAME]: name });
      if (found) break;
    }
    if (!found) return no("NoNamespace", "namespaceSelector matches no namespace");
  }
  return {
    effective: true,
    reason: "InEffect",
    message: "the policy applies to the objects that it selects",
  };
}
