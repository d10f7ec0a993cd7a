import { listAt, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { Predecessor } from "../../core/module/module.ts";
import type { View } from "../../core/view/view.ts";

export const WEBHOOKS = "mutatingwebhookconfigurations.admissionregistration.k8s.io";

/**
 * node-label-operator sets it on every Labels. Once it is uninstalled, nothing else removes the finalizer, and they
 * can't be deleted.
 */
export const FINALIZER = "node-label-operator.openshift.io/finalizer";

/** The name and the path of its webhook; OLM generates the name of the configuration. */
const WEBHOOK = "mnode.kb.io";
const PATH = "/label-v1-nodes";

const MEANING =
  "node-label-operator is still installed: it overwrites labels of new nodes by its own precedence, and may refuse a node. Stop it once usher is ready: scale its Deployment to 0 and delete its webhook configuration; its Labels and OwnedLabels stay, and usher removes its finalizer from them";

/** By the name in its manifests. */
export const PREDECESSORS: readonly Predecessor[] = [
  { name: "node-label-operator-mutating-webhook-configuration", meaning: MEANING },
];

/** The consequence of the still registered webhook; `undefined` if it is not registered. */
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
