import { defineModule } from "../../core/module/module.ts";
import { CODES } from "./codes.ts";
import { mutateNode } from "./desired/mutate-node.ts";
import { labels, ownedLabels } from "./kinds.ts";
import { PREDECESSORS } from "./predecessor.ts";
import { startupCleanup } from "./reconcile/cleanup.ts";
import { previewNodes } from "./reconcile/preview.ts";
import { nodeLabelsReconciler } from "./reconcile/reconciler.ts";
import { attachIndex, type Policy, RuleIndex } from "./rules/rule-index.ts";
import { MODULE, settingsOf, settingsSchema } from "./settings.ts";

/** Labels, annotations and taints of nodes, by their names, from the moment that they exist. */
export const nodeLabels = defineModule<Policy>({
  name: MODULE,
  summary: "labels nodes by their names the moment they exist, and keeps them right",
  kinds: [labels, ownedLabels],
  reads: [
    {
      resource: "nodes",
      group: "",
      version: "v1",
      kind: "Node",
      scope: "Cluster",
      keep: [
        ["metadata", "labels"],
        ["metadata", "annotations"],
        ["spec", "taints"],
      ],
      // A new node comes with the request; those that exist only the controller looks at.
      leaderOnly: true,
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
    },
    {
      // That it is served says which NodeRestriction this API server has.
      resource: "clusterversions",
      group: "config.openshift.io",
      version: "v1",
      kind: "ClusterVersion",
      scope: "Cluster",
      keep: [],
      optional: true,
    },
  ],
  hooks: (_view, installation) =>
    settingsOf(installation).enabled
      ? [
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
            // A node that joins unlabelled is mended at once; one that can't join is an outage.
            failure: "open",
            timeoutSeconds: 1,
            sideEffects: "NoneOnDryRun",
            reinvocation: "Never",
          },
        ]
      : [],
  assemble: (policies, installation) => {
    const book = new RuleIndex(policies, settingsOf(installation));
    return attachIndex(
      {
        mutate: (context) => mutateNode(context, book),
        update: (removed, added) => {
          for (const policy of removed) book.remove(policy);
          for (const policy of added) book.add(policy);
        },
      },
      book,
    );
  },
  reconciler: nodeLabelsReconciler,
  preview: previewNodes,
  access: () => [
    { group: "", resource: "nodes", verbs: ["get", "patch"] },
    // For the finalizer of another system.
    { group: labels.group, resource: labels.plural, verbs: ["patch"] },
  ],
  settings: settingsSchema,
  tolerations: (installation) => [
    { key: settingsOf(installation).startupTaint, operator: "Exists", effect: "NoSchedule" },
  ],
  cleanup: (installation) => [startupCleanup(installation)],
  predecessors: PREDECESSORS,
  codes: CODES,
});
