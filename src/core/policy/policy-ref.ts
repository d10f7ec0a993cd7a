import { at, type JsonObject, stringAt } from "../json.ts";
import type { Kind } from "./kind.ts";

/** A policy, at one generation. Offline there may be neither uid nor generation. */
export interface PolicyRef {
  readonly kind: string;
  /** Absent for cluster-scoped policies. */
  readonly namespace?: string;
  readonly name: string;
  readonly uid?: string;
  readonly generation?: number;
  /** Known only from an object's provenance, which any writer of the object can forge: its outcomes are not counted. */
  readonly gone?: true;
}

/** How findings name a policy. */
export function refOf(kind: Pick<Kind, "kind" | "scope">, object: JsonObject): PolicyRef {
  const namespace = stringAt(object, "metadata", "namespace");
  const uid = stringAt(object, "metadata", "uid");
  const generation = at(object, "metadata", "generation");
  return {
    kind: kind.kind,
    name: stringAt(object, "metadata", "name") ?? "",
    ...(kind.scope === "Namespaced" ? { namespace: namespace ?? "default" } : {}),
    ...(uid === undefined ? {} : { uid }),
    ...(typeof generation === "number" ? { generation } : {}),
  };
}

/** `etcd-pool`, or `shop/etcd-pool` for a namespaced policy. */
export function policyName(policy: PolicyRef): string {
  return policy.namespace === undefined ? policy.name : `${policy.namespace}/${policy.name}`;
}

/** Unique among all policies of a module: `ClusterPodSchedulingPolicy/etcd-pool`. */
export function policyKey(policy: PolicyRef): string {
  return `${policy.kind}/${policyName(policy)}`;
}
