import type { JsonObject } from "../../src/core/json.ts";
import { stringAt } from "../../src/core/json.ts";
import { groupVersionOf } from "../../src/core/kubernetes/object.ts";
import type { Change } from "../../src/core/view/view.ts";

const API_VERSION = "kupid.gardener.cloud/v1alpha1";

export function clusterPolicy(name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject {
  return {
    apiVersion: API_VERSION,
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name, uid: `uid-of-${name}`, generation: 1, ...metadata },
    spec,
  };
}

export function namespacedPolicy(namespace: string, name: string, spec: JsonObject): JsonObject {
  return {
    apiVersion: API_VERSION,
    kind: "PodSchedulingPolicy",
    metadata: { name, namespace, uid: `uid-of-${namespace}-${name}`, generation: 1 },
    spec,
  };
}

export function namespace(name: string, labels: JsonObject = {}): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { "kubernetes.io/metadata.name": name, ...labels } },
  };
}

const RESOURCES: Readonly<Record<string, string>> = {
  Namespace: "namespaces",
  NodeSchedulingPolicy: "nodeschedulingpolicies",
  ClusterPodSchedulingPolicy: "clusterpodschedulingpolicies",
  PodSchedulingPolicy: "podschedulingpolicies",
};

/** A change event: this object was created or updated. */
export function came(object: JsonObject): Change {
  const kind = stringAt(object, "kind") ?? "";
  const { group } = groupVersionOf(stringAt(object, "apiVersion"));
  const plural = RESOURCES[kind] ?? `${kind.toLowerCase()}s`;
  return {
    resource: group === "" ? plural : `${plural}.${group}`,
    namespace: stringAt(object, "metadata", "namespace") ?? "",
    name: stringAt(object, "metadata", "name") ?? "",
    object,
  };
}

export function went(object: JsonObject): Change {
  return { ...came(object), object: undefined };
}
