import type { BuiltInEntry } from "./list.ts";

const POLICY = "kubernetes/kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy";

/** Who assigns pods and runs them on control-plane nodes of plain Kubernetes. */
export const KUBERNETES_ENTRIES: readonly BuiltInEntry[] = [
  { entry: "system:kube-scheduler", list: "assigners", since: "1.6", source: `${POLICY}/policy.go` },
  {
    entry: "kube-system/default",
    list: "workloads",
    since: "1.6",
    source: "kubernetes/kubernetes cmd/kubeadm/app/phases/controlplane/manifests.go",
  },
];
