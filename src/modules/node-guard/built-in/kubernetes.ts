import type { BuiltInEntry } from "./list.ts";

/** Who assigns pods and runs them on control-plane nodes of plain Kubernetes. */
export const KUBERNETES_ENTRIES: readonly BuiltInEntry[] = [
  {
    entry: "system:kube-scheduler",
    list: "assigners",
    since: "1.6",
    source: "kubernetes/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go",
  },
  // Addons, CNI and what kubeadm, k3s and RKE2 deploy: with the scope Namespace one account stands for all of kube-system.
  {
    entry: "kube-system/default",
    list: "workloads",
    since: "1.6",
    source: "kubernetes/kubernetes pkg/controller/serviceaccount/serviceaccounts_controller.go",
  },
];
