import type { Predecessor } from "../../core/module/module.ts";

/** Webhooks that refuse pods on control-plane nodes, by the names in their manifests. */
export const PREDECESSORS: readonly Predecessor[] = [
  {
    name: "sre-pod-validation",
    meaning:
      "the managed webhooks of OpenShift Dedicated and ROSA judge pods that tolerate the taints of masters: both refuse, each by its own list. They can stay; a pod that node-guard authorises may be refused by them",
  },
];
