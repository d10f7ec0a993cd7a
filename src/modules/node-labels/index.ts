import { defineModule, NODES } from "../../core/module/module.ts";
import { defineReconciler } from "../../core/module/reconciler.ts";
import { CODES } from "./codes.ts";
import { compile } from "./compile.ts";
import { dashboard } from "./dashboard.ts";
import { declaration } from "./declaration.ts";
import { startupCleanup } from "./desired/node-patch.ts";
import { standing } from "./desired/standing.ts";
import { NodeEvaluator } from "./evaluator.ts";
import { labels, ownedLabels } from "./kinds.ts";
import { MUTATIONS, SETTING_MUTATIONS } from "./mutations.ts";
import { PREDECESSORS } from "./predecessor.ts";
import { nodeLabelsReconciler } from "./reconcile/reconciler.ts";
import { contradictions } from "./rules/contradictions.ts";
import { RuleIndex, type RulePolicy } from "./rules/rule-index.ts";
import { MODULE, settingsOf, settingsSchema } from "./settings.ts";

/** Sets labels, annotations and taints of nodes by name, from their creation on. */
export const nodeLabels = defineModule<RulePolicy>({
  name: MODULE,
  summary: declaration.summary,
  lint: contradictions,
  dashboard,
  kinds: [labels, ownedLabels],
  reads: [
    {
      ...NODES,
      keep: [
        ["metadata", "labels"],
        ["metadata", "annotations"],
        ["spec", "taints"],
      ],
      // A new node comes with the request; only the controller reads existing ones.
      leaderOnly: true,
      why: "compare nodes with the rules",
    },
    {
      resource: "mutatingwebhookconfigurations",
      group: "admissionregistration.k8s.io",
      version: "v1",
      kind: "MutatingWebhookConfiguration",
      scope: "Cluster",
      keep: [["webhooks"]],
      leaderOnly: true,
      optional: true,
      why: "see whether node-label-operator still changes nodes",
    },
    {
      // Whether it is served determines which NodeRestriction the API server has.
      resource: "clusterversions",
      group: "config.openshift.io",
      version: "v1",
      kind: "ClusterVersion",
      scope: "Cluster",
      keep: [],
      optional: true,
      why: "distinguish OpenShift from other clusters",
    },
  ],
  hooks: () => [
    {
      name: MODULE,
      module: MODULE,
      phase: "mutate",
      rules: [
        {
          groups: [""],
          versions: ["v1"],
          resources: ["nodes"],
          operations: ["CREATE"],
          scope: "Cluster",
        },
      ],
      // The controller labels a node that joins unlabelled immediately; one that can't join is an outage.
      failure: "open",
      tooLarge: "allow",
      timeoutSeconds: 1,
      sideEffects: "NoneOnDryRun",
      reinvocation: "Never",
    },
  ],
  assemble: (policies, installation) => new NodeEvaluator(new RuleIndex(policies, settingsOf(installation))),
  reconciler: defineReconciler(nodeLabelsReconciler),
  standing,
  compile,
  access: [
    {
      group: "",
      resource: "nodes",
      verbs: ["get", "patch"],
      why: "set labels, annotations and taints of nodes, and remove the startup taint",
    },
    {
      group: labels.group,
      resource: labels.plural,
      verbs: ["patch"],
      why: "remove the finalizer of node-label-operator",
    },
  ],
  settings: settingsSchema,
  tolerations: (installation) => [
    { key: settingsOf(installation).startupTaint, operator: "Exists", effect: "NoSchedule" },
  ],
  cleanup: (installation) => [startupCleanup(installation)],
  predecessors: PREDECESSORS,
  mutations: MUTATIONS,
  settingMutations: SETTING_MUTATIONS,
  codes: CODES,
});
