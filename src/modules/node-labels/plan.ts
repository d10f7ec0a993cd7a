import { type NeedMore, need } from "../../core/decision.ts";
import { equal, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { kindResource } from "../../core/kind.ts";
import { isBeingDeleted, labelsOf, nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Need } from "../../core/need.ts";
import type { Plan, PlanContext, Planner } from "../../core/plan.ts";
import type { Change, View } from "../../core/view.ts";
import { bookOf, type Policy, type RuleBook } from "./book.ts";
import { desiredOf } from "./desired.ts";
import { differenceOf } from "./difference.ts";
import { labels, ownedLabels } from "./kinds.ts";
import { ledgerIn, ledgerNeed, planLedger } from "./ledger.ts";
import { nodePatch } from "./node-patch.ts";
import { planPolicy } from "./policy-plan.ts";
import { livePredecessor, WEBHOOKS } from "./predecessor.ts";
import type { NodeRule } from "./rule.ts";
import { MODULE } from "./settings.ts";
import { forgetSweeps, goOn, look, type Seen } from "./sweep.ts";
import { needsWork, saysTheSame } from "./touched.ts";

const NOTHING: Plan = { writes: [] };
const LEDGER = "ledger";
const LABELS = kindResource(labels);
const OWNED = kindResource(ownedLabels);

/**
 * Keeps nodes as all rules together say: one item a node, so that one which can't be written holds up no other, and one a policy for its
 * status.
 */
export const nodeLabelsPlanner: Planner = {
  // Only its status says how often it was applied; no node is to be looked at for that.
  counted: ({ resource, namespace, name }) => [policyKey(resource, namespace, name)],
  keys: (change, view, assembly) => {
    const book = bookOf(assembly?.evaluator(MODULE));
    if (book === undefined) return [];
    if (change.resource === "nodes") return nodeKeys(change, book);
    if (change.resource === LABELS || change.resource === OWNED) return policyKeys(change, view, book);
    return change.resource === WEBHOOKS ? webhookKeys(change, view) : [];
  },
  all: function* (view, assembly) {
    const book = bookOf(assembly?.evaluator(MODULE));
    if (book === undefined) return;
    forgetSweeps();
    yield LEDGER;
    for (const node of view.list("nodes")) if (needsWork(node, book)) yield nodeKey(nameOf(node));
    yield* allPolicies(view);
  },
  settled: (key, view, assembly) => {
    const book = bookOf(assembly?.evaluator(MODULE));
    const node = key.startsWith("node ") ? view.get("nodes", "", key.slice(5)) : undefined;
    return book === undefined || node === undefined ? [] : ruleKeys(book, node);
  },
  plan: (key, context) => {
    const book = bookOf(context.assembly?.evaluator(MODULE));
    if (book === undefined || context.assembly === undefined) return NOTHING;
    const { namespace } = context.assembly.installation;
    if (key === LEDGER) return planLedger(book, namespace, context);
    if (key.startsWith("node ")) return planNode(key.slice(5), book, namespace, context);
    if (key.startsWith("sweep "))
      return { writes: [], also: keysOfSeen(goOn(key.slice(6), context.view, book)) };
    const [, resource = "", inside = "", name = ""] = /^policy (\S+) (.*)\/(.*)$/.exec(key) ?? [];
    const kind = resource === LABELS ? labels : ownedLabels;
    return planPolicy({ kind, of: { resource, namespace: inside, name }, book }, context);
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
function ruleKeys(book: RuleBook, node: JsonObject): string[] {
  return book.meaning(nameOf(node), labelsOf(node)).map(keyOfRule);
}

function* allPolicies(view: View): Iterable<string> {
  for (const resource of [LABELS, OWNED])
    for (const object of view.list(resource)) yield policyKey(resource, namespaceOf(object), nameOf(object));
}

/** The node itself where something is to be done, and the rules that count it: where it came or went, or they look at its labels. */
function nodeKeys({ object, before }: Change, book: RuleBook): string[] {
  const keys = object !== undefined && needsWork(object, book) ? [nodeKey(nameOf(object))] : [];
  if (object === undefined || before === undefined) {
    const node = object ?? before;
    return node === undefined ? keys : [...keys, ...ruleKeys(book, node)];
  }
  if (book.selecting.size === 0 || equal(labelsOf(before), labelsOf(object))) return keys;
  const looking = [...book.named(nameOf(object))].filter(({ selector }) => selector !== undefined);
  return [...keys, ...looking.map(keyOfRule)];
}

/** The policy itself, the nodes that are no longer right by it, and the rules that it quarrels, or no longer quarrels, with. */
function policyKeys(change: Change, view: View, book: RuleBook): string[] {
  const { resource, namespace, name, object } = change;
  const own = object === undefined ? [] : [policyKey(resource, namespace, name)];
  if (saysTheSame(change)) return own;
  const states = [change.before, object].map((state) => statedBy(resource, state, book));
  const rules = states.filter((state) => state?.kind === "rule");
  const ledger = rules.some(({ taints }) => taints.length > 0) ? [LEDGER] : [];
  return [...ledger, ...own, ...keysOfSeen(look(view, book, states))];
}

function keysOfSeen({ nodes, rules, rest }: Seen): string[] {
  return [
    ...nodes.map(nodeKey),
    ...[...rules].map(keyOfRule),
    ...(rest === undefined ? [] : [`sweep ${rest}`]),
  ];
}

/** What an object says, unless its namespace is one whose rules do not count. */
function statedBy(resource: string, object: JsonObject | undefined, book: RuleBook): Policy | undefined {
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

/** How long to wait where the ledger could not be read. */
const LEDGER_AGAIN = 30;

/**
 * The node as the view has it says whether there is anything to do; what is then done rests on the stored one, because the view keeps no
 * version: that changes with every heartbeat.
 */
function planNode(name: string, book: RuleBook, namespace: string, context: PlanContext): Plan | NeedMore {
  const known = context.view.get("nodes", "", name);
  if (known === undefined || !needsWork(known, book)) return NOTHING;
  const live: Need = { get: { resource: "nodes", name }, live: true };
  const fact = context.facts.of(live);
  if (fact === undefined) {
    const { asksLedger } = differenceOf(known, desiredOf(known, book), book.settings, undefined);
    return asksLedger ? need(live, ledgerNeed(namespace)) : need(live);
  }
  if ("failed" in fact) throw new Error(fact.failed);
  if (!("found" in fact) || !isObject(fact.found) || isBeingDeleted(fact.found)) return NOTHING;
  const node = fact.found;
  const desired = desiredOf(node, book, context.now);
  const difference = differenceOf(node, desired, book.settings, ledgerIn(context, namespace));
  if (difference.asksLedger && context.facts.of(ledgerNeed(namespace)) === undefined)
    return need(ledgerNeed(namespace));
  const patch = nodePatch(node, difference);
  const waits = difference.changes.flatMap((change) => change.waits ?? []);
  const again = [
    ...waits.map((ms) => Math.max(1, Math.ceil(ms / 1_000))),
    ...(difference.asksLedger ? [LEDGER_AGAIN] : []),
  ];
  const resourceVersion = stringAt(node, "metadata", "resourceVersion") ?? "";
  return {
    writes: patch.length === 0 ? [] : [{ patch, of: { resource: "nodes", name }, resourceVersion }],
    ...(again.length === 0 ? {} : { again: Math.min(...again) }),
  };
}
