import type { BuiltInEntry } from "./list.ts";

/** Who assigns pods and runs them on control-plane nodes of OpenShift. */
export const OPENSHIFT_ENTRIES: readonly BuiltInEntry[] = [
  {
    entry: "system:kube-scheduler",
    list: "assigners",
    since: "4.1",
    source: "openshift/cluster-kube-scheduler-operator bindata/assets/kube-scheduler/kubeconfig-cm.yaml",
  },
  {
    entry: "openshift-kube-scheduler/openshift-kube-scheduler-sa",
    list: "authorizedUsers",
    since: "4.1",
    source: "openshift/cluster-kube-scheduler-operator bindata/assets/kube-scheduler/sa.yaml",
  },
];
