/** An identity whose work is the life of nodes, labels included. */
interface LifecycleIdentity {
  readonly username: string;
  /** The upstream file that gives it the right to write nodes, as repository and path. */
  readonly source: string;
}

const BOOTSTRAP = "kubernetes/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy";

/** They may take a node out of a group. Kubelets are not among them, nor is usher. */
export const LIFECYCLE_IDENTITIES: readonly LifecycleIdentity[] = [
  {
    username: "system:serviceaccount:kube-system:node-controller",
    source: `${BOOTSTRAP}/controller_policy.go`,
  },
  {
    username: "system:serviceaccount:kube-system:cloud-node-controller",
    source: "kubernetes/cloud-provider controllers/node/node_controller.go",
  },
  {
    username: "system:serviceaccount:kube-system:cloud-controller-manager",
    source: "kubernetes/cloud-provider controllers/node/node_controller.go",
  },
  {
    username: "system:serviceaccount:openshift-machine-config-operator:machine-config-controller",
    source: "openshift/machine-config-operator manifests/machineconfigcontroller/clusterrole.yaml",
  },
  {
    username: "system:serviceaccount:openshift-machine-api:machine-api-controllers",
    source: "openshift/machine-api-operator pkg/controller/nodelink/nodelink_controller.go",
  },
];

const USERNAMES: ReadonlySet<string> = new Set(LIFECYCLE_IDENTITIES.map(({ username }) => username));

export function isLifecycleIdentity(username: string): boolean {
  return USERNAMES.has(username);
}
