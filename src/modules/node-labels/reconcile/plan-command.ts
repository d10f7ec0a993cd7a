import { z } from "zod";
import type { Json } from "../../../core/json.ts";
import { isBeingDeleted, nameOf } from "../../../core/kubernetes/object.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import type { CommandCode, ReportItem } from "../../../core/module/command.ts";
import type { Code } from "../../../core/module/module.ts";
import { byText } from "../../../core/order.ts";
import { describeChange, describeLost } from "../desired/describe.ts";
import { desiredOf } from "../desired/desired.ts";
import { differenceOf, EVERY_TAINT, keyAndEffect, type NodeChange } from "../desired/difference.ts";
import { ruleIndexOf } from "../evaluator.ts";
import { type LostKey, lostKeysOf } from "../rules/conflicts.ts";

/** One change of a node, as JSON has it. */
interface PlannedNodeChange {
  readonly kind: "Node";
  readonly name: string;
  readonly what: NodeChange["what"];
  readonly change: NodeChange["change"];
  readonly key: string;
  /** Of a taint. */
  readonly effect?: string;
  readonly from?: string;
  readonly to?: string;
  /** The policy, as `namespace/name`; absent if it is the module's own. */
  readonly by?: string;
  /** As the table has it: `taint dedicated=edge:NoSchedule` */
  readonly message: string;
}

/** A key that a rule does not get on a node, as JSON has it. */
interface PlannedConflict {
  readonly kind: "Node";
  readonly name: string;
  readonly what: NodeChange["what"];
  readonly key: string;
  readonly effect?: string;
  /** The rule's value, and the winning rule's value. */
  readonly value: string;
  readonly winning: string;
  readonly rule: string;
  readonly winner: string;
  readonly code: "USHER-L01";
  readonly message: string;
}

interface NodePlan {
  readonly name: string;
  readonly changes: readonly PlannedNodeChange[];
  readonly conflicts: readonly PlannedConflict[];
}

const SIGNS = { add: "+", change: "~", remove: "-" } as const;

const what = z.enum(["label", "annotation", "taint"]);
const shape = z.strictObject({
  changes: z.array(
    z.strictObject({
      kind: z.literal("Node"),
      name: z.string(),
      what,
      change: z.enum(["add", "change", "remove"]),
      key: z.string(),
      effect: z.string().optional(),
      from: z.string().optional(),
      to: z.string().optional(),
      by: z.string().optional().describe("The policy, as namespace/name."),
      message: z.string(),
    }),
  ),
  conflicts: z.array(
    z.strictObject({
      kind: z.literal("Node"),
      name: z.string(),
      what,
      key: z.string(),
      effect: z.string().optional(),
      value: z.string(),
      winning: z.string(),
      rule: z.string(),
      winner: z.string(),
      code: z.literal("USHER-L01"),
      message: z.string(),
    }),
  ),
  summary: z.strictObject({
    nodes: z.int(),
    add: z.int(),
    change: z.int(),
    remove: z.int(),
    conflicts: z.int(),
  }),
});

/** Shows the reconciler's changes on nodes, and values that rules lose to others. */
export const planCode: CommandCode = {
  shape,
  run: ({ assembly }) => {
    const plans = nodePlans(assembly);
    const changes = plans.flatMap((plan) => plan.changes);
    const conflicts = plans.flatMap((plan) => plan.conflicts);
    const counts = countsOf(changes, conflicts);
    return {
      data: { changes, conflicts, summary: counts } as unknown as Json,
      table: { columns: ["OBJECT", "CHANGE", "BY"], rows: plans.flatMap(rowsOf) },
      summary: summaryText(counts),
      items: plans.map(itemOf),
      codes: [NODE_CHANGE],
      exit: changes.length > 0 ? "found" : "fine",
    };
  },
};

/** Additions, changes and removals, in the order of the nodes' names. */
function nodePlans(assembly: Assembly): NodePlan[] {
  const index = ruleIndexOf(assembly);
  if (index === undefined) return [];
  const nodes = [...assembly.view.list("nodes")].filter((node) => !isBeingDeleted(node));
  nodes.sort(byText(nameOf));
  return nodes.map((node) => {
    const name = nameOf(node);
    const desired = desiredOf(node, index);
    const { changes } = differenceOf(node, desired, index.settings, { ledger: EVERY_TAINT });
    return {
      name,
      changes: changes.map((change) => plannedChange(name, change)),
      conflicts: lostKeysOf(desired.rules).map((lost) => plannedConflict(name, lost)),
    };
  });
}

function plannedChange(name: string, node: NodeChange): PlannedNodeChange {
  const { what, change, key, from, to, by } = node;
  return {
    kind: "Node",
    name,
    what,
    change,
    ...keyOf(what, key),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(by === undefined ? {} : { by }),
    message: describeChange(node),
  };
}

function plannedConflict(name: string, lost: LostKey): PlannedConflict {
  const { what, key, value, winning, rule, winner } = lost;
  return {
    kind: "Node",
    name,
    what,
    ...keyOf(what, key),
    value,
    winning,
    rule: rule.id,
    winner: winner.id,
    code: "USHER-L01",
    message: describeLost(lost),
  };
}

function keyOf(what: NodeChange["what"], id: string): { readonly key: string; readonly effect?: string } {
  return what === "taint" ? keyAndEffect(id) : { key: id };
}

/** `+ label pool=edge`, `~ label pool=edge (was core)`, `- taint dedicated:NoSchedule`, `! label pool=core: rule a/b sets edge` */
function rowsOf({ name, changes, conflicts }: NodePlan): string[][] {
  const rows = [
    ...changes.map(({ change, message, by = "-" }) => [`${SIGNS[change]} ${message}`, by]),
    ...conflicts.map(({ message, code, rule }) => [`! ${message} (${code})`, rule]),
  ];
  return rows.map((row, i) => [i === 0 ? `Node ${name}` : "", ...row]);
}

function itemOf({ name, changes, conflicts }: NodePlan): ReportItem {
  return {
    object: { kind: "Node", name },
    verdict: changes.length > 0 ? "change" : "current",
    findings: [
      ...changes.map(({ change, message, by }) => ({
        level: "error" as const,
        code: "node-change",
        message: `${SIGNS[change]} ${message}`,
        ...(by === undefined ? {} : { by }),
      })),
      ...conflicts.map(({ message, code, rule }) => ({ level: "warning" as const, code, message, by: rule })),
    ],
  };
}

const NODE_CHANGE: Code = {
  code: "node-change",
  title: "A node differs from what rules say",
  meaning: "Usher would change this label, annotation or taint of the node.",
  remedy:
    "Nothing where usher runs in the cluster: it writes the node. Otherwise compare the rule that is named with the node.",
};

interface PlanSummary {
  readonly nodes: number;
  readonly add: number;
  readonly change: number;
  readonly remove: number;
  readonly conflicts: number;
}

function countsOf(changes: readonly PlannedNodeChange[], conflicts: readonly PlannedConflict[]): PlanSummary {
  const count = (wanted: NodeChange["change"]) => changes.filter(({ change }) => change === wanted).length;
  const nodes = new Set(changes.map(({ name }) => name)).size;
  const [add, change, remove] = [count("add"), count("change"), count("remove")];
  return { nodes, add, change, remove, conflicts: conflicts.length };
}

/** `2 nodes: 4 to add, 1 to change, 1 to remove; 1 conflict` */
function summaryText({ nodes, add, change, remove, conflicts }: PlanSummary): string {
  const lost = conflicts === 0 ? "" : `; ${conflicts} ${conflicts === 1 ? "conflict" : "conflicts"}`;
  if (nodes === 0) return `no changes: nodes match the policies${lost}`;
  const counted = nodes === 1 ? "1 node" : `${nodes} nodes`;
  return `${counted}: ${add} to add, ${change} to change, ${remove} to remove${lost}`;
}
