// Pod reviews as an API server sends them: about 6 KB.
// Several that differ, because a parser that sees one body for ever learns its shape and looks faster than it is.
import { podObject, uid } from "./pod.ts";
import { NAMESPACE, ROLE_OF_NOBODY, ROLE_OF_TEN, roleOf } from "./policies.ts";

/** Whether one policy of the source wants the pod, none does, or ten do. */
export type Pod = "wanted" | "unwanted" | "wanted by ten";
export const PODS: readonly Pod[] = ["wanted", "unwanted", "wanted by ten"];

export const BODIES = 16;

/** Whether usher has something to write into it. */
export function isPatched(pod: Pod): boolean {
  return pod !== "unwanted";
}

/** The bodies to send in turn. Each wanted pod is wanted by exactly one policy, and each by another. */
export function reviews(pod: Pod, policies: number): string[] {
  const bodies: string[] = [];
  for (let i = 0; i < BODIES; i++) {
    bodies.push(JSON.stringify(review(i, roleFor(pod, i, policies))));
  }
  return bodies;
}

function roleFor(pod: Pod, i: number, policies: number): string {
  if (pod === "wanted") return roleOf(Math.floor((i * policies) / BODIES));
  return pod === "unwanted" ? ROLE_OF_NOBODY : ROLE_OF_TEN;
}

function review(i: number, role: string): object {
  return {
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    request: {
      uid: uid(i, 1),
      kind: { group: "", version: "v1", kind: "Pod" },
      resource: { group: "", version: "v1", resource: "pods" },
      requestKind: { group: "", version: "v1", kind: "Pod" },
      requestResource: { group: "", version: "v1", resource: "pods" },
      namespace: NAMESPACE,
      operation: "CREATE",
      userInfo: {
        username: "system:serviceaccount:kube-system:statefulset-controller",
        uid: uid(i, 2),
        groups: ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
        extra: { "authentication.kubernetes.io/credential-id": [`JTI=${uid(i, 3)}`] },
      },
      object: podObject(i, role),
      oldObject: null,
      dryRun: false,
      options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
    },
  };
}
