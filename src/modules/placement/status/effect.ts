import type { Installation } from "../../../core/installation/installation.ts";
import { at, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { Read } from "../../../core/module/module.ts";
import type { Kind } from "../../../core/policy/kind.ts";
import { refOf } from "../../../core/policy/policy-ref.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import { OWN_NAMES } from "../../../core/registration/names.ts";
import type { View } from "../../../core/view/view.ts";
import { describeNodes, PENDING, type SelectedNodes } from "../criteria/selected-nodes.ts";
import { WITHOUT_POLICY } from "../hooks/hooks.ts";
import { preparePolicy } from "../policy/policy.ts";
import { unreachedBecause } from "../policy/unreached.ts";
import type { Effect } from "./status.ts";

/** The API server's view of usher's webhooks. */
export const WEBHOOKS: Read = {
  resource: "mutatingwebhookconfigurations",
  group: "admissionregistration.k8s.io",
  version: "v1",
  kind: "MutatingWebhookConfiguration",
  scope: "Cluster",
  name: OWN_NAMES.webhooks,
  keep: [["webhooks"]],
  leaderOnly: true,
  optional: true,
  why: "say since when a first policy counts",
};

export const WEBHOOKS_RESOURCE = `${WEBHOOKS.resource}.${WEBHOOKS.group}`;

/** Whether the API server calls usher for new objects: without any policy it does not. `undefined`: unknown. */
export function isAsked(view: View): boolean | undefined {
  const configuration = view.get(WEBHOOKS_RESOURCE, "", OWN_NAMES.webhooks);
  if (configuration === undefined) return undefined;
  return listAt(configuration, "webhooks").some(
    (entry) =>
      /\/mutate\/(.*\/)?placement(\/|$)/.test(pathOf(entry)) &&
      !listAt(entry, "matchConditions").some((one) => at(one, "name") === WITHOUT_POLICY),
  );
}

function pathOf(entry: Parameters<typeof at>[0]): string {
  return stringAt(entry, "clientConfig", "service", "path") ?? stringAt(entry, "clientConfig", "url") ?? "";
}

interface Known {
  readonly problems: readonly Problem[];
  readonly nodes: SelectedNodes | undefined;
  readonly view: View;
  readonly installation: Installation | undefined;
}

/** Whether a policy can select any object, given the current namespaces and nodes. Pods change too often to be considered. */
export function effectOf(
  kind: Kind,
  object: JsonObject,
  { problems, nodes, view, installation }: Known,
): Effect {
  const no = (reason: string, message: string): Effect => ({ effective: false, reason, message });
  if (problems.some(({ severity }) => severity === "error"))
    return no("Invalid", "the policy is invalid; objects that it selects follow its failurePolicy");
  const { policy } = preparePolicy(object, refOf(kind, object), kind.scope);
  if (policy === undefined) return no("SelectsNothing", "a selector is missing, so nothing is selected");
  if (policy.criteria.length === 0 && policy.fromNamespace === undefined)
    return no("NoCriteria", "the policy has no scheduling criteria");
  const unreached = unreachedBecause(policy, view, installation);
  if (unreached !== undefined) return no(unreached.reason, unreached.message);
  if (isAsked(view) === false)
    return no("NotAskedYet", "the API server does not ask usher yet: the webhook is being registered");
  if (nodes?.selected === 0) return no("NoNode", `${describeNodes(nodes)}: ${PENDING}`);
  return {
    effective: true,
    reason: "InEffect",
    message: `the policy applies to the objects that it selects${nodes === undefined ? "" : `, and ${describeNodes(nodes)}`}`,
  };
}
