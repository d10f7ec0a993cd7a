import { listAt, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Predecessor } from "../../core/module/module.ts";
import type { View } from "../../core/view/view.ts";

export const WEBHOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io";

/** Put by node-label-operator on every Labels. Where it is gone, nobody else takes it off, and they can't be deleted. */
export const FINALIZER = "node-label-operator.openshift.io/finalizer";

/** How its webhook calls itself, and where it is asked; OLM gives the configuration a name that nobody can foresee. */
const WEBHOOK = "mnode.kb.io";
const PATH = "/label-v1-nodes";

const MEANING =
  "node-label-operator is still at work here: it overwrites labels of new nodes by its own order, and may refuse a node. Stop it once usher is ready: scale its Deployment to 0 and delete its webhook configuration; its Labels and OwnedLabels stay, and usher takes its finalizer off them";

/** By the names that its manifests give, for whoever installs. */
export const PREDECESSORS: readonly Predecessor[] = [
  { name: "node-label-operator-mutating-webhook-configuration", meaning: MEANING },
];

/** Its webhook, where it is still registered: what that means. */
export function livePredecessor(view: View): string | undefined {
  for (const configuration of view.list(WEBHOOKS)) {
    for (const webhook of listAt(configuration, "webhooks")) {
      const path = stringAt(webhook, "clientConfig", "service", "path");
      if (stringAt(webhook, "name") === WEBHOOK && path === PATH)
        return `MutatingWebhookConfiguration ${nameOf(configuration)}: ${MEANING}`;
    }
  }
  return undefined;
}
