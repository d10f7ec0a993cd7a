import { allow, type Result } from "../../../core/decision/decision.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Group } from "../groups/group.ts";
import { CLAIMS } from "./claim.ts";
import { evaluateClaim, type GuardedPod } from "./evaluate-claim.ts";
import { decide } from "./report.ts";

/** A node that leaves a group by its labels, through `nodes` or `nodes/status`: the selector is evaluated before and after. */
export function decideNodeLabels(context: Context, groups: readonly Group[]): Result {
  const { request, draft, facts } = context;
  const [before, after] = [request.oldObject, draft.object];
  if (before === undefined || isLifecycleIdentity(request.userInfo.username)) return allow();
  const left = groups.filter(
    ({ labelSelector, protectNodeLabels }) =>
      protectNodeLabels &&
      matches(labelSelector, labelsOf(before)) &&
      !matches(labelSelector, labelsOf(after)),
  );
  const name = request.name === "" ? nameOf(before) : request.name;
  const subject: GuardedPod = { request, name: `node ${name}`, namespace: "", account: undefined };
  const claimed = { claim: CLAIMS.nodeLabels, groups: left, nodes: [name], untrustedActor: isUsher(context) };
  const found = evaluateClaim(claimed, subject, facts);
  return "need" in found ? found : decide(found.evaluated, subject);
}

/** A rule of another module must not free a node through usher's own account, regardless of the lists. */
function isUsher({ request, installation }: Context): boolean {
  return serviceAccountOf(request.userInfo.username)?.namespace === installation.namespace;
}

/** An identity whose work is the life of nodes, labels included. */
interface LifecycleIdentity {
  readonly username: string;
  /** The upstream file that gives it permission to write nodes, as repository and path. */
  readonly source: string;
}

const BOOTSTRAP = "kubernetes/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy";
const OPENSTACK = "kubernetes/cloud-provider-openstack manifests/controller-manager";

/** They may remove a node from a group. Kubelets are not among them, nor is usher. */
export const LIFECYCLE_IDENTITIES: readonly LifecycleIdentity[] = [
  {
    username: "system:serviceaccount:kube-system:node-controller",
    source: `${BOOTSTRAP}/controller_policy.go`,
  },
  // Cloud controllers as providers deploy them; with credentials for each controller the former is the node-controller above.
  {
    username: "system:serviceaccount:kube-system:cloud-controller-manager",
    source: `${OPENSTACK}/cloud-controller-manager-role-bindings.yaml`,
  },
  {
    username: "system:serviceaccount:kube-system:cloud-node-controller",
    source: `${OPENSTACK}/cloud-controller-manager-role-bindings.yaml`,
  },
  {
    username: "system:serviceaccount:openshift-cloud-controller-manager:cloud-controller-manager",
    source:
      "openshift/cluster-cloud-controller-manager-operator manifests/0000_26_cloud-controller-manager-operator_03_rbac_provider.yaml",
  },
  // Labels by mastersSchedulable, and the role label itself.
  {
    username: "system:serviceaccount:openshift-machine-config-operator:machine-config-controller",
    source: "openshift/machine-config-operator manifests/machineconfigcontroller/clusterrole.yaml",
  },
  // Copies the labels of a Machine to its node.
  {
    username: "system:serviceaccount:openshift-machine-api:machine-api-controllers",
    source: "openshift/machine-api-operator install/0000_30_machine-api-operator_09_rbac.yaml",
  },
];

const USERNAMES: ReadonlySet<string> = new Set(LIFECYCLE_IDENTITIES.map(({ username }) => username));

export function isLifecycleIdentity(username: string): boolean {
  return USERNAMES.has(username);
}
