import { type Json, type JsonObject, stringAt } from "../../../core/json.ts";
import type { UserInfo } from "../../../core/kubernetes/principals.ts";

/** A subject that labels nodes in the course of their life, and the upstream file that says so. */
interface NodeLifecycleIdentity {
  readonly username: string;
  readonly source: string;
}

const CONTROLLERS =
  "kubernetes/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go";

/**
 * They may change labels of protected nodes without an entry. Usher's own account is not among them: a rule of its policies could
 * take a node out of its group.
 */
export const NODE_LIFECYCLE: readonly NodeLifecycleIdentity[] = [
  { username: "system:serviceaccount:kube-system:node-controller", source: CONTROLLERS },
  { username: "system:kube-controller-manager", source: CONTROLLERS },
  {
    username: "system:serviceaccount:openshift-machine-config-operator:machine-config-controller",
    source: "openshift/machine-config-operator manifests/machineconfigcontroller/sa.yaml",
  },
  {
    username: "system:serviceaccount:openshift-machine-config-operator:machine-config-daemon",
    source: "openshift/machine-config-operator manifests/machineconfigdaemon/sa.yaml",
  },
];

const USERNAMES: ReadonlySet<string> = new Set(NODE_LIFECYCLE.map(({ username }) => username));

/** Whether the sender of a request is a node-lifecycle identity. */
export function isNodeLifecycle(userInfo: UserInfo | JsonObject | undefined): boolean {
  return USERNAMES.has(stringAt(userInfo as Json | undefined, "username") ?? "");
}
