import type { JsonObject } from "../json.ts";
import { OWN_NAMES } from "./names.ts";

/**
 * A ClusterRole without rules and bindings that represents the installation. It owns the objects that usher writes at run time. Every
 * means of removal deletes it with the other objects, and then the garbage collector deletes the webhooks, with or without a live replica.
 * It is a ClusterRole because every cluster serves that kind, cluster-scoped. Without `rules`: the API server stores an empty list as null,
 * and tools that compare would see a difference.
 */
export function anchor(): JsonObject {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: OWN_NAMES.anchor },
  };
}
