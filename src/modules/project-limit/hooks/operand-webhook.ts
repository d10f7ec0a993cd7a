import { at, isObject, type Json, type JsonObject, listAt } from "../../../core/json.ts";
import type { Read } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import { OPERAND } from "../operand-names.ts";

/** The webhook of the operand. */
export const OPERAND_WEBHOOK: Read = {
  resource: "validatingwebhookconfigurations",
  group: "admissionregistration.k8s.io",
  version: "v1",
  kind: "ValidatingWebhookConfiguration",
  scope: "Cluster",
  name: OPERAND.webhook,
  keep: [["webhooks"], ["metadata", "annotations", OPERAND.leaving]],
  // Without it both are called, and a request counts once.
  optional: true,
  why: "leave ProjectRequests to the operand if there is one",
};

/** Whether API servers call the operand for every created ProjectRequest, and will continue to. */
export function isOperandAsked(view: View): boolean {
  const configuration = view.get(`${OPERAND_WEBHOOK.resource}.${OPERAND_WEBHOOK.group}`, "", OPERAND.webhook);
  const isLeaving = at(configuration, "metadata", "annotations", OPERAND.leaving) !== undefined;
  return !isLeaving && asksAboutProjectRequests(configuration);
}

/** Whether a webhook configuration covers every created ProjectRequest. */
export function asksAboutProjectRequests(configuration: JsonObject | undefined): boolean {
  return listAt(configuration, "webhooks").some(
    (entry) => selectsAll(at(entry, "objectSelector")) && listAt(entry, "rules").some(isForProjectRequests),
  );
}

function selectsAll(selector: Json | undefined): boolean {
  return !isObject(selector) || Object.keys(selector).length === 0;
}

function isForProjectRequests(rule: Json): boolean {
  const has = (field: string, value: string) =>
    listAt(rule, field).some((one) => one === value || one === "*");
  return (
    has("apiGroups", "project.openshift.io") &&
    has("apiVersions", "v1") &&
    has("resources", "projectrequests") &&
    has("operations", "CREATE") &&
    at(rule, "scope") !== "Namespaced"
  );
}
