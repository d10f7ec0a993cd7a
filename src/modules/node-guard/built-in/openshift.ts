import type { BuiltInEntry } from "./list.ts";

const SCHEDULER = "openshift/cluster-kube-scheduler-operator bindata/assets/kube-scheduler";
const INSTALLER = "openshift/library-go pkg/operator/staticpod/controller/installer/installer_controller.go";
const MACHINE_CONFIG = "openshift/machine-config-operator manifests";

function workload(entry: string, source: string): BuiltInEntry {
  return { entry, list: "workloads", since: "4.1", source };
}

/** Operators that create installer and pruner pods with spec.nodeName, in another namespace than their own. */
function installer(entry: string): BuiltInEntry {
  return { entry, list: "authorizedUsers", since: "4.1", source: INSTALLER };
}

/** Who assigns pods and runs them on control-plane nodes of OpenShift. */
export const OPENSHIFT_ENTRIES: readonly BuiltInEntry[] = [
  {
    entry: "system:kube-scheduler",
    list: "assigners",
    since: "4.1",
    source: `${SCHEDULER}/kubeconfig-cm.yaml`,
  },
  {
    entry: "openshift-kube-scheduler/openshift-kube-scheduler-sa",
    list: "authorizedUsers",
    since: "4.1",
    source: `${SCHEDULER}/sa.yaml`,
  },
  installer("openshift-kube-apiserver-operator/kube-apiserver-operator"),
  installer("openshift-kube-controller-manager-operator/kube-controller-manager-operator"),
  installer("openshift-kube-scheduler-operator/openshift-kube-scheduler-operator"),
  installer("openshift-etcd-operator/etcd-operator"),
  workload(
    "kube-system/default",
    "kubernetes/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go",
  ),
  workload(
    "openshift-kube-apiserver/default",
    "openshift/cluster-kube-apiserver-operator bindata/assets/kube-apiserver/ns.yaml",
  ),
  workload(
    "openshift-kube-controller-manager/default",
    "openshift/cluster-kube-controller-manager-operator bindata/assets/kube-controller-manager/pod.yaml",
  ),
  workload("openshift-etcd/default", "openshift/cluster-etcd-operator bindata/etcd/ns.yaml"),
  workload(
    "openshift-multus/multus",
    "openshift/cluster-network-operator bindata/network/multus/002-rbac.yaml",
  ),
  workload("openshift-console/default", "openshift/console-operator manifests/02-namespace.yaml"),
  workload(
    "openshift-machine-config-operator/machine-config-daemon",
    `${MACHINE_CONFIG}/machineconfigdaemon/sa.yaml`,
  ),
  // Namespaces with random names; users can't request a project that begins with openshift-.
  workload("openshift-must-gather-*/default", "openshift/oc pkg/cli/admin/mustgather/mustgather.go"),
  workload("openshift-debug-*/default", "openshift/oc pkg/cli/debug/debug.go"),
  // Every other component of the platform, so that none is locked out because a list is older than a release.
  workload(
    "openshift-*/default",
    "openshift/openshift-apiserver pkg/project/apiserver/registry/projectrequest/delegated/delegated.go",
  ),
];
