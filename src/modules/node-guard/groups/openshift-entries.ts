import type { EntryList } from "./group.ts";

/** One entry of a built-in list, with its history. Releases are those of the platform: `1.30`, `4.12`. */
export interface BuiltInEntry {
  readonly entry: string;
  readonly list: EntryList;
  /** The first release that needs it, of those examined: 1.6, the first with RBAC's identities, and 4.1 are the oldest. */
  readonly since: string;
  /** The first release that works without it; it still counts. */
  readonly deprecated?: string;
  /** The first release in which it no longer counts: later than `deprecated`. */
  readonly removed?: string;
  /**
   * The upstream file of the entry, as repository and path: it defines the account, assigns the pods, or names the
   * namespace, whose account `default` every namespace has.
   */
  readonly source: string;
}

const SCHEDULER = "openshift/cluster-kube-scheduler-operator";
const API_SERVER = "openshift/cluster-kube-apiserver-operator";
const CONTROLLER_MANAGER = "openshift/cluster-kube-controller-manager-operator";
const ETCD = "openshift/cluster-etcd-operator";
const VERSION = "openshift/cluster-version-operator";

function workload(entry: string, source: string, since = "4.1"): BuiltInEntry {
  return { entry, list: "workloads", since, source };
}

/** Operators that create pods with spec.nodeName, mostly in another namespace than their own. */
function operator(entry: string, source: string, since = "4.1"): BuiltInEntry {
  return { entry, list: "authorizedUsers", since, source };
}

/** Who assigns pods and runs them on control-plane nodes of OpenShift. */
export const OPENSHIFT_ENTRIES: readonly BuiltInEntry[] = [
  // The user of the client certificate that the scheduler gets.
  {
    entry: "system:kube-scheduler",
    list: "assigners",
    since: "4.1",
    source: `${API_SERVER} pkg/operator/certrotationcontroller/certrotationcontroller.go`,
  },
  operator(
    "openshift-kube-scheduler/openshift-kube-scheduler-sa",
    `${SCHEDULER} bindata/assets/kube-scheduler/sa.yaml`,
  ),
  // Installer and pruner pods of static pods.
  operator(
    "openshift-kube-apiserver-operator/kube-apiserver-operator",
    `${API_SERVER} manifests/0000_20_kube-apiserver-operator_05_serviceaccount.yaml`,
  ),
  operator(
    "openshift-kube-controller-manager-operator/kube-controller-manager-operator",
    `${CONTROLLER_MANAGER} manifests/0000_25_kube-controller-manager-operator_05_serviceaccount.yaml`,
  ),
  operator(
    "openshift-kube-scheduler-operator/openshift-kube-scheduler-operator",
    `${SCHEDULER} manifests/0000_25_kube-scheduler-operator_05_serviceaccount.yaml`,
  ),
  operator(
    "openshift-etcd-operator/etcd-operator",
    `${ETCD} manifests/0000_20_etcd-operator_05_serviceaccount.yaml`,
    "4.4",
  ),
  // Each upgrade begins with a pod on the node of the version operator; older releases create it by a Job.
  {
    ...operator(
      "openshift-cluster-version/default",
      `${VERSION} install/0000_00_cluster-version-operator_02_roles.yaml`,
    ),
    deprecated: "4.22",
  },
  operator(
    "openshift-cluster-version/cluster-version-operator",
    `${VERSION} install/0000_00_cluster-version-operator_02_service_account-cluster-version-operator.yaml`,
    "4.22",
  ),
  {
    entry: "kube-system/job-controller",
    list: "assigners",
    since: "4.1",
    source: `${VERSION} pkg/cvo/updatepayload.go`,
  },
  workload(
    "kube-system/default",
    "kubernetes/kubernetes pkg/controller/serviceaccount/serviceaccounts_controller.go",
  ),
  workload("openshift-kube-apiserver/default", `${API_SERVER} bindata/assets/kube-apiserver/ns.yaml`),
  workload(
    "openshift-kube-controller-manager/default",
    `${CONTROLLER_MANAGER} bindata/bootkube/manifests/00_openshift-kube-controller-manager-ns.yaml`,
  ),
  workload("openshift-etcd/default", `${ETCD} bindata/etcd/ns.yaml`, "4.4"),
  workload(
    "openshift-multus/multus",
    "openshift/cluster-network-operator bindata/network/multus/002-rbac.yaml",
  ),
  workload("openshift-console/default", "openshift/console-operator manifests/02-namespace.yaml"),
  workload(
    "openshift-machine-config-operator/machine-config-daemon",
    "openshift/machine-config-operator manifests/machineconfigdaemon/sa.yaml",
  ),
  // Namespaces with random names; users can't request a project that begins with openshift-.
  workload("openshift-must-gather-*/default", "openshift/oc pkg/cli/admin/mustgather/mustgather.go"),
  workload("openshift-debug-*/default", "openshift/oc pkg/cli/debug/debug.go", "4.12"),
  // Every other component of the platform, so that none is locked out because a list is older than a release.
  workload(
    "openshift-*/default",
    "openshift/openshift-apiserver pkg/project/apiserver/registry/projectrequest/delegated/delegated.go",
  ),
];
