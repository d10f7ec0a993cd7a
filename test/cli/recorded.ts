import type { JsonObject } from "../../src/core/json.ts";

/** A review as an API server sends it for this object; `more` overrides fields. */
export function recordOf(resource: string, object: JsonObject, more: object = {}) {
  const { apiVersion, kind, metadata } = object as {
    apiVersion: string;
    kind: string;
    metadata: { name: string; namespace: string };
  };
  const [version = "", group = ""] = apiVersion.split("/").toReversed();
  const request = {
    uid: "u-1",
    kind: { group, version, kind },
    resource: { group, version, resource },
    name: metadata.name,
    namespace: metadata.namespace,
    operation: "CREATE",
    userInfo: { username: "kubernetes-admin", groups: ["system:authenticated"] },
    object,
    ...more,
  };
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
}
