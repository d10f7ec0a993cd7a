import { nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import type { View } from "../../../core/view/view.ts";
import { labels, ownedLabels } from "../kinds.ts";
import type { NodeRule } from "../rules/rule.ts";

export const LABELS = kindResource(labels);
export const OWNED = kindResource(ownedLabels);

/** One item a node, so that one which can't be written delays no other; one a policy for its status; and two for all together. */
export type NodeLabelsKey =
  | { readonly kind: "node"; readonly name: string }
  | PolicyKey
  | { readonly kind: "ledger" }
  | { readonly kind: "sweep" };

export type PolicyKey = {
  readonly kind: "policy";
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
};

export function nodeKey(name: string): NodeLabelsKey {
  return { kind: "node", name };
}

export function policyKey(resource: string, namespace: string, name: string): PolicyKey {
  return { kind: "policy", resource, namespace, name };
}

export function ruleKey({ ref }: NodeRule): PolicyKey {
  return policyKey(LABELS, ref.namespace ?? "", ref.name);
}

export function* allPolicyKeys(view: View): Iterable<PolicyKey> {
  for (const resource of [LABELS, OWNED])
    for (const object of view.list(resource)) yield policyKey(resource, namespaceOf(object), nameOf(object));
}
