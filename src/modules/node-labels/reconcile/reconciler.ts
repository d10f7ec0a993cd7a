import type { Assembly } from "../../../core/evaluate/assembly.ts";
import { equal, type JsonObject } from "../../../core/json.ts";
import { labelsOf, nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import type { ReconcileResult, Reconciler } from "../../../core/module/reconciler.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import type { Change, View } from "../../../core/view/view.ts";
import { labels, ownedLabels } from "../kinds.ts";
import { reconcileLedger } from "../ledger/ledger.ts";
import { memoryOf } from "../ledger/ledger-memory.ts";
import { livePredecessor, WEBHOOKS } from "../predecessor.ts";
import type { NodeRule } from "../rules/rule.ts";
import { type Policy, type RuleIndex, ruleIndexOf } from "../rules/rule-index.ts";
import { MODULE } from "../settings.ts";
import { reconcileNode } from "./reconcile-node.ts";
import { reconcilePolicy } from "./reconcile-policy.ts";
import { type Seen, sweepOf } from "./sweep.ts";
import { needsWork, saysTheSame } from "./touched.ts";

const NOTHING: ReconcileResult = { writes: [] };
const LEDGER = "ledger";
const SWEEP = "sweep";
const LABELS = kindResource(labels);
const OWNED = kindResource(ownedLabels);

/**
 * Keeps nodes as all rules together say: one item a node, so that one which can't be written holds up no other, and one a policy for its
 * status.
 */
export const nodeLabelsReconciler: Reconciler = {
  // Only its status says how often it was applied; no node is to be looked at for that.
  counted: ({ resource, namespace, name }) => [policyKey(resource, namespace, name)],
  keys: (change, view, assembly) => {
    const book = ruleIndexOf(assembly?.evaluator(MODULE));
    if (book === undefined || assembly === undefined) return [];
    if (change.resource === "nodes") return nodeKeys(change, book);
    if (change.resource === LABELS || change.resource === OWNED)
      return policyKeys(change, view, book, assembly);
    return change.resource === WEBHOOKS ? webhookKeys(change, view) : [];
  },
  all: function* (view, assembly) {
    const book = ruleIndexOf(assembly?.evaluator(MODULE));
    if (book === undefined || assembly === undefined) return;
    yield LEDGER;
    yield* keysOfSeen(sweepOf(assembly).begin(view, book));
    yield* allPolicies(view);
  },
  settled: (key, view, assembly) => {
    const book = ruleIndexOf(assembly?.evaluator(MODULE));
    const node = key.startsWith("node ") ? view.get("nodes", "", key.slice(5)) : undefined;
    return book === undefined || node === undefined ? [] : ruleKeys(book, node);
  },
  plan: (key, context) => {
    const book = ruleIndexOf(context.assembly?.evaluator(MODULE));
    if (book === undefined || context.assembly === undefined) return NOTHING;
    const { namespace } = context.assembly.installation;
    const keeping = { book, memory: memoryOf(context.assembly), namespace };
    if (key === LEDGER) return reconcileLedger(keeping, context);
    if (key.startsWith("node ")) return reconcileNode(key.slice(5), keeping, context);
    if (key === SWEEP)
      return { writes: [], also: keysOfSeen(sweepOf(context.assembly).goOn(context.view, book)) };
    const [, resource = "", inside = "", name = ""] = /^policy (\S+) (.*)\/(.*)$/.exec(key) ?? [];
    const kind = resource === LABELS ? labels : ownedLabels;
    return reconcilePolicy({ kind, of: { resource, namespace: inside, name }, book }, context);
  },
};

function nodeKey(name: string): string {
  return `node ${name}`;
}

function policyKey(resource: string, namespace: string, name: string): string {
  return `policy ${resource} ${namespace}/${name}`;
}

function keyOfRule({ ref }: NodeRule): string {
  return policyKey(LABELS, ref.namespace ?? "", ref.name);
}

/** The rules that mean a node. */
function ruleKeys(book: RuleIndex, node: JsonObject): string[] {
  return book.meaning(nameOf(node), labelsOf(node)).map(keyOfRule);
}

function* allPolicies(view: View): Iterable<string> {
  for (const resource of [LABELS, OWNED])
    for (const object of view.list(resource)) yield policyKey(resource, namespaceOf(object), nameOf(object));
}

/** The node itself where something is to be done, and the rules that count it: where it came or went, or one begins or ceases to mean it. */
function nodeKeys({ object, before }: Change, book: RuleIndex): string[] {
  const keys = object !== undefined && needsWork(object, book) ? [nodeKey(nameOf(object))] : [];
  if (object === undefined || before === undefined) {
    const node = object ?? before;
    return node === undefined ? keys : [...keys, ...ruleKeys(book, node)];
  }
  if (book.selecting.size === 0 || equal(labelsOf(before), labelsOf(object))) return keys;
  const was = new Set(ruleKeys(book, before));
  const is = new Set(ruleKeys(book, object));
  // Whoever quarrels there with one that no longer means it has one quarrel less.
  return was.symmetricDifference(is).size === 0 ? keys : [...keys, ...was.union(is)];
}

/** The policy itself, the nodes that are no longer right by it, and the rules that it quarrels, or no longer quarrels, with. */
function policyKeys(change: Change, view: View, book: RuleIndex, assembly: Assembly): string[] {
  const { resource, namespace, name, object } = change;
  const own = object === undefined ? [] : [policyKey(resource, namespace, name)];
  if (saysTheSame(change)) return own;
  const states = [change.before, object].map((state) => statedBy(resource, state, book));
  const [before] = states;
  if (before?.kind === "rule") memoryOf(assembly).owe(before);
  const rules = states.filter((state) => state?.kind === "rule");
  const ledger = rules.some(({ taints }) => taints.length > 0) ? [LEDGER] : [];
  return [...ledger, ...own, ...keysOfSeen(sweepOf(assembly).look(view, book, states))];
}

function keysOfSeen({ nodes, rules, more }: Seen): string[] {
  return [...nodes.map(nodeKey), ...[...rules].map(keyOfRule), ...(more ? [SWEEP] : [])];
}

/** What an object says, unless its namespace is one whose rules do not count. */
function statedBy(resource: string, object: JsonObject | undefined, book: RuleIndex): Policy | undefined {
  if (object === undefined) return undefined;
  const kind = resource === LABELS ? labels : ownedLabels;
  const ref = { kind: kind.kind, namespace: namespaceOf(object), name: nameOf(object) };
  const { policy } = kind.prepare(object, ref);
  return policy !== undefined && book.counts(policy) ? policy : undefined;
}

/** Where another system's webhook came or went, every rule says so. */
function webhookKeys({ name, before, object }: Change, view: View): string[] {
  const found = (one: JsonObject | undefined) =>
    livePredecessor(view.with([{ resource: WEBHOOKS, namespace: "", name, object: one }])) !== undefined;
  return found(before) === found(object) ? [] : [...allPolicies(view)];
}
