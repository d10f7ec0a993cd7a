import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { stringAt } from "../../src/core/json.ts";
import { groupVersionOf } from "../../src/core/kubernetes/object.ts";

/** Plurals that are not formed by adding an "s". */
const PLURALS: Readonly<Record<string, string>> = {
  ClusterPodSchedulingPolicy: "clusterpodschedulingpolicies",
  PodSchedulingPolicy: "podschedulingpolicies",
};

/** A request as the API server would send it for this object; `change` overrides fields. */
export function requestFor(object: JsonObject, change: Partial<AdmissionRequest> = {}): AdmissionRequest {
  const { group, version } = groupVersionOf(stringAt(object, "apiVersion"));
  const kind = stringAt(object, "kind") ?? "";
  const resource = PLURALS[kind] ?? `${kind.toLowerCase()}s`;
  return {
    uid: "5f1c2a8e-0000-4000-8000-000000000001",
    kind: { group, version, kind },
    resource: { group, version, resource },
    subResource: "",
    name: stringAt(object, "metadata", "name") ?? "",
    namespace: stringAt(object, "metadata", "namespace") ?? "",
    operation: "CREATE",
    userInfo: { username: "jane", groups: ["system:authenticated"] },
    object,
    oldObject: undefined,
    dryRun: false,
    options: undefined,
    ...change,
  };
}
