import { equal, type JsonObject } from "../../../core/json.ts";
import { labelsOf, nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import { keyIdentity, type Reconciler } from "../../../core/module/reconciler.ts";
import type { Change, View } from "../../../core/view/view.ts";
import { ruleIndexOf } from "../evaluator.ts";
import { labels, ownedLabels } from "../kinds.ts";
import { reconcileLedger } from "../ledger/ledger.ts";
import { livePredecessor, WEBHOOKS } from "../predecessor.ts";
import type { RuleIndex, RulePolicy } from "../rules/rule-index.ts";
import {
  allPolicyKeys,
  LABELS,
  type NodeLabelsKey,
  nodeKey,
  OWNED,
  type PolicyKey,
  policyKey,
  ruleKey,
} from "./keys.ts";
import { isUnchanged } from "./policy-reach.ts";
import { reconcileNode } from "./reconcile-node.ts";
import { reconcilePolicy } from "./reconcile-policy.ts";
import { initialState, type NodeLabelsState } from "./state.ts";
import type { SweepStep } from "./sweep.ts";

/** Keeps nodes in their desired state, the ledger complete, and the status of policies current. */
export const nodeLabelsReconciler: Reconciler<NodeLabelsKey, NodeLabelsState> = {
  initialState,
  // Tallies appear only in the status of the policy; they affect no node.
  tallyKeys: ({ resource, namespace, name }) => [policyKey(resource, namespace, name)],
  keys: (change, state, { view, assembly }) => {
    const index = ruleIndexOf(assembly);
    if (index === undefined) return [];
    if (change.resource === "nodes") return nodeKeys(change, index, state);
    if (change.resource === LABELS || change.resource === OWNED)
      return policyKeys(change, view, index, state);
    return change.resource === WEBHOOKS ? webhookKeys(change, view) : [];
  },
  initialKeys: function* (state, { view, assembly }) {
    const index = ruleIndexOf(assembly);
    if (index === undefined) return;
    yield { kind: "ledger" };
    yield* stepKeys(state.sweep.start({ view, index, pending: state.pending }));
    yield* allPolicyKeys(view);
  },
  failureKeys: (key, _state, { view, assembly }) => {
    const index = ruleIndexOf(assembly);
    const node = key.kind === "node" ? view.get("nodes", "", key.name) : undefined;
    return index === undefined || node === undefined ? [] : matchingRuleKeys(index, node);
  },
  reconcile: (key, state, context) => {
    const { assembly, view } = context;
    const index = ruleIndexOf(assembly);
    if (index === undefined || assembly === undefined) return { writes: [] };
    const { namespace } = assembly.installation;
    switch (key.kind) {
      case "node":
        return reconcileNode(key.name, index, state, { ...context, namespace });
      case "ledger":
        return reconcileLedger({ index, cache: state.ledger, namespace }, context);
      case "sweep": {
        const step = state.sweep.next({ view, index, pending: state.pending });
        return { writes: [], enqueue: stepKeys(step) };
      }
      case "policy":
        return reconcilePolicy(key, index, state, context);
    }
  },
};

/** The rules that match a node. */
function matchingRuleKeys(index: RuleIndex, node: JsonObject): PolicyKey[] {
  return index.matching(nameOf(node), labelsOf(node)).map(ruleKey);
}

/** The node if it needs work, and the rules that count it: if it was created or deleted, or starts or stops matching one. */
function nodeKeys({ object, before }: Change, index: RuleIndex, state: NodeLabelsState): NodeLabelsKey[] {
  const keys =
    object === undefined || state.pending.differenceOf(object, index) === undefined
      ? []
      : [nodeKey(nameOf(object))];
  if (object === undefined || before === undefined) {
    const node = object ?? before;
    return node === undefined ? keys : [...keys, ...matchingRuleKeys(index, node)];
  }
  if (index.withSelector.size === 0 || equal(labelsOf(before), labelsOf(object))) return keys;
  const was = byIdentity(matchingRuleKeys(index, before));
  const is = byIdentity(matchingRuleKeys(index, object));
  if (was.size === is.size && [...was.keys()].every((id) => is.has(id))) return keys;
  // All of them: an unchanged rule may gain or lose a conflict.
  return [...keys, ...new Map([...was, ...is]).values()];
}

function byIdentity(keys: readonly PolicyKey[]): Map<string, PolicyKey> {
  return new Map(keys.map((key) => [keyIdentity(key), key]));
}

/** The policy itself, the nodes that need work by it, and the rules that it conflicts, or no longer conflicts, with. */
function policyKeys(change: Change, view: View, index: RuleIndex, state: NodeLabelsState): NodeLabelsKey[] {
  const { resource, namespace, name, object } = change;
  const own = object === undefined ? [] : [policyKey(resource, namespace, name)];
  const id = `${namespace}/${name}`;
  if (resource === LABELS) state.countedAt.delete(id);
  if (isUnchanged(change)) return own;
  if (resource === OWNED) state.firstSeen.delete(id);
  const states = [change.before, object].map((one) => policyOf(resource, one, index));
  const rules = states.filter((one) => one?.kind === "rule");
  const ledger: NodeLabelsKey[] = rules.some(({ taints }) => taints.length > 0) ? [{ kind: "ledger" }] : [];
  const step = state.sweep.policiesChanged(states, { view, index, pending: state.pending });
  return [...ledger, ...own, ...stepKeys(step)];
}

function stepKeys({ nodes, rules, more }: SweepStep): NodeLabelsKey[] {
  const next: NodeLabelsKey[] = more ? [{ kind: "sweep" }] : [];
  return [...nodes.map(nodeKey), ...[...rules].map(ruleKey), ...next];
}

/** The prepared policy, unless its namespace is out of scope. */
function policyOf(
  resource: string,
  object: JsonObject | undefined,
  index: RuleIndex,
): RulePolicy | undefined {
  if (object === undefined) return undefined;
  const kind = resource === LABELS ? labels : ownedLabels;
  const ref = { kind: kind.kind, namespace: namespaceOf(object), name: nameOf(object) };
  const { policy } = kind.prepare(object, ref);
  return policy !== undefined && index.inScope(policy) ? policy : undefined;
}

/** Every policy if node-label-operator's webhook was created or deleted: their status shows it. */
function webhookKeys({ name, before, object }: Change, view: View): PolicyKey[] {
  const found = (one: JsonObject | undefined) =>
    livePredecessor(view.with([{ resource: WEBHOOKS, namespace: "", name, object: one }])) !== undefined;
  return found(before) === found(object) ? [] : [...allPolicyKeys(view)];
}
