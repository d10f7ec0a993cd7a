import {
  defineModule,
  type Module,
  NODES,
  PREVIEW_ACCESS,
  type Predecessor,
} from "../../core/module/module.ts";
import { defineReconciler } from "../../core/module/reconciler.ts";
import { WORKLOAD_READS } from "./check/violations.ts";
import { CODES } from "./codes.ts";
import { compile } from "./compile.ts";
import { dashboard } from "./dashboard.ts";
import { declaration } from "./declaration.ts";
import { GuardEvaluator } from "./evaluator.ts";
import { fallback } from "./fallback/compile.ts";
import { FALLBACK_READS } from "./fallback/in-force.ts";
import { NODES_BY_LABEL } from "./groups/group-nodes.ts";
import type { GuardPolicy } from "./groups/policy.ts";
import { hooks } from "./hooks/hooks.ts";
import { override, policy, policyConfig, scheduler } from "./kinds.ts";
import { DECISION_METRICS, STATUS_METRICS } from "./metrics.ts";
import { MUTATIONS, SETTING_MUTATIONS } from "./mutations.ts";
import { GATE, GATE_ON, MANAGES_TAINT, MODULE, settingsSchema } from "./settings.ts";
import { guardReconciler } from "./status/reconciler.ts";

/** Webhooks that refuse pods on control-plane nodes, by the names in their manifests. */
const PREDECESSORS: readonly Predecessor[] = [
  {
    name: "sre-pod-validation",
    meaning:
      "the managed webhooks of OpenShift Dedicated and ROSA judge pods that tolerate the taints of masters: both refuse, each by its own list. They can stay; a pod that node-guard authorises may be refused by them",
  },
];

/** Keeps unauthorised workloads off protected nodes, the control plane's first. */
export const nodeGuard: Module = defineModule<GuardPolicy>({
  name: MODULE,
  summary: declaration.summary,
  dashboard,
  compile,
  kinds: [policyConfig, policy, scheduler, override],
  reads: [
    {
      ...NODES,
      keep: [
        ["metadata", "labels"],
        ["metadata", "creationTimestamp"],
        ["spec", "taints"],
        ["spec", "unschedulable"],
      ],
      indexes: [NODES_BY_LABEL],
      when: [GATE_ON],
      why: "know which nodes are protected",
    },
    {
      // Whether it is served determines which built-in lists count.
      resource: "clusterversions",
      group: "config.openshift.io",
      version: "v1",
      kind: "ClusterVersion",
      scope: "Cluster",
      keep: [],
      optional: true,
      when: [GATE_ON],
      why: "distinguish OpenShift from other clusters",
    },
    ...WORKLOAD_READS,
    ...FALLBACK_READS,
  ],
  hooks,
  assemble: (policies, installation) => new GuardEvaluator(policies, installation),
  managed: fallback,
  reconciler: defineReconciler(guardReconciler),
  metrics: [...DECISION_METRICS, ...STATUS_METRICS],
  access: [
    {
      group: "",
      resource: "nodes",
      verbs: ["get"],
      why: "look up a node that is too new to be known",
      when: [GATE_ON],
    },
    {
      group: "",
      resource: "nodes",
      verbs: ["patch"],
      why: "set and remove the taint of control-plane nodes",
      when: [GATE_ON, MANAGES_TAINT],
    },
    {
      group: "",
      resource: "pods",
      verbs: ["get"],
      why: "look up the pod of a binding or of an exec",
      when: [GATE_ON],
    },
    { ...PREVIEW_ACCESS, when: [GATE_ON, ...PREVIEW_ACCESS.when] },
    {
      group: "authorization.k8s.io",
      resource: "subjectaccessreviews",
      verbs: ["create"],
      why: "ask whether RBAC authorises a subject, for groups with rbac: true",
      when: [GATE_ON],
    },
  ],
  settings: settingsSchema,
  gates: [GATE],
  predecessors: PREDECESSORS,
  mutations: MUTATIONS,
  settingMutations: SETTING_MUTATIONS,
  codes: CODES,
});
