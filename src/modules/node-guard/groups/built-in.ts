import type { Installation } from "../../../core/installation/installation.ts";
import { OWN_NAMES } from "../../../core/registration/names.ts";
import { CONTROL_PLANE } from "./group.ts";
import { type BuiltInEntry, OPENSHIFT_ENTRIES } from "./openshift-entries.ts";
import { type GroupSource, prepareGroups } from "./policy.ts";

/** By Exists: k3s and RKE2 set the label to "true", kubeadm and OpenShift to "". */
const SELECTOR = {
  matchExpressions: [{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }],
};

/** Who assigns pods and runs them on control-plane nodes of plain Kubernetes. */
export const KUBERNETES_ENTRIES: readonly BuiltInEntry[] = [
  {
    entry: "system:kube-scheduler",
    list: "assigners",
    since: "1.6",
    source: "kubernetes/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go",
  },
  // Addons, CNI and components of kubeadm, k3s and RKE2: with the scope Namespace one account represents all of
  // kube-system.
  {
    entry: "kube-system/default",
    list: "workloads",
    since: "1.6",
    source: "kubernetes/kubernetes pkg/controller/serviceaccount/serviceaccounts_controller.go",
  },
];

const ENTRIES = { Kubernetes: KUBERNETES_ENTRIES, OpenShift: OPENSHIFT_ENTRIES, None: undefined };

/** The built-in group. It has no mode: administrators set one. */
export function builtInGroups(
  platform: "Kubernetes" | "OpenShift" | "None",
  installation: Installation,
): readonly GroupSource[] {
  const listed = ENTRIES[platform];
  if (listed === undefined) return [];
  const operand = platform === "OpenShift" ? [OPERAND_ENTRY] : [];
  const entries = [...listed.filter(counts), ownEntry(installation), ...operand];
  const byList = Map.groupBy(entries, ({ list }) => list);
  const lists = Object.fromEntries([...byList].map(([list, all]) => [list, all.map(({ entry }) => entry)]));
  const group = { name: CONTROL_PLANE, labelSelector: SELECTOR, ...lists };
  return prepareGroups([group], "built-in", []).groups;
}

/** An entry counts from before its release, so that an upgrade locks nothing out, until it is removed. */
function counts({ removed }: BuiltInEntry): boolean {
  return removed === undefined;
}

/**
 * The operand of ProjectRequestLimit runs on control-plane nodes. Only on OpenShift, which it is for, and where users
 * can't request a namespace that begins with openshift-: elsewhere a user who creates the namespace first would get
 * those nodes.
 */
const OPERAND_ENTRY: Pick<BuiltInEntry, "list" | "entry"> = {
  list: "workloads",
  entry: "openshift-project-request-limit-operator/project-request-limit-admission",
};

/** Usher's own pods may run there. As an actor it would free nodes at the request of any author of its policies. */
function ownEntry({ namespace }: Installation): Pick<BuiltInEntry, "list" | "entry"> {
  return { list: "workloads", entry: `${namespace}/${OWN_NAMES.account}` };
}
