import type { Assembly } from "../../../core/evaluate/assembly.ts";
import type { Json } from "../../../core/json.ts";
import { isBeingDeleted, nameOf } from "../../../core/kubernetes/object.ts";
import type { CommandCode } from "../../../core/module/command.ts";
import { desiredOf } from "../desired/desired.ts";
import { differenceOf, keyAndEffect, type NodeChange, type TaintLedger } from "../desired/difference.ts";
import { ruleIndexOf } from "../evaluator.ts";

/** One change of a node, as JSON has it. */
interface PlannedNodeChange {
  readonly kind: "Node";
  readonly name: string;
  readonly what: NodeChange["what"];
  readonly change: NodeChange["change"];
  readonly key: string;
  readonly from?: string;
  readonly to?: string;
  /** The policy, as `namespace/name`; absent where it is the module's own. */
  readonly by?: string;
}

/** A plan shows every possible change: there is no grace period, and every recorded taint counts as usher's. */
const EVERY_TAINT: TaintLedger = { includes: () => true };

const SIGNS = { add: "+", change: "~", remove: "-" } as const;

/** Shows what the reconciler would change on nodes. */
export const planCode: CommandCode = {
  run: ({ assembly }) => {
    const changes = plannedChanges(assembly);
    return {
      data: { changes } as unknown as Json,
      table: { columns: ["OBJECT", "CHANGE", "BY"], rows: rowsOf(changes) },
      summary: summaryOf(changes),
      exit: changes.length > 0 ? "found" : "fine",
    };
  },
};

/** What would be added, changed and removed, in the order of the nodes' names. */
function plannedChanges(assembly: Assembly): PlannedNodeChange[] {
  const index = ruleIndexOf(assembly);
  if (index === undefined) return [];
  const nodes = [...assembly.view.list("nodes")].filter((node) => !isBeingDeleted(node));
  nodes.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  return nodes.flatMap((node) => {
    const { changes } = differenceOf(node, desiredOf(node, index), index.settings, { ledger: EVERY_TAINT });
    return changes.map((change) => ({ kind: "Node" as const, name: nameOf(node), ...formatted(change) }));
  });
}

/** A taint as kubectl writes it: `dedicated=edge:NoSchedule`. */
function formatted({
  what,
  change,
  key: id,
  from,
  to,
  by,
}: NodeChange): Omit<PlannedNodeChange, "kind" | "name"> {
  const { key, effect } = what === "taint" ? keyAndEffect(id) : { key: id, effect: undefined };
  const value = (text: string) => (effect === undefined ? text : `${text}:${effect}`);
  return {
    what,
    change,
    key,
    ...(from === undefined ? {} : { from: value(from) }),
    ...(to === undefined ? {} : { to: value(to) }),
    ...(by === undefined ? {} : { by }),
  };
}

function rowsOf(changes: readonly PlannedNodeChange[]): string[][] {
  return changes.map((change, i) => [
    changes[i - 1]?.name === change.name ? "" : `Node ${change.name}`,
    changeText(change),
    change.by ?? "-",
  ]);
}

/** `+ label pool=edge`, `~ label pool=edge (was core)`, `- taint dedicated:NoSchedule` */
function changeText({ what, change, key, from = "", to = "" }: PlannedNodeChange): string {
  const value = change === "remove" ? from : to;
  const was = change === "change" ? ` (was ${from === "" ? '""' : from})` : "";
  return `${SIGNS[change]} ${what} ${key}${value === "" ? "" : `=${value}`}${was}`;
}

function summaryOf(changes: readonly PlannedNodeChange[]): string {
  if (changes.length === 0) return "no changes: nodes match the policies";
  const count = (wanted: NodeChange["change"]) => changes.filter(({ change }) => change === wanted).length;
  const nodes = new Set(changes.map(({ name }) => name)).size;
  const objects = nodes === 1 ? "1 object" : `${nodes} objects`;
  return `${objects}: ${count("add")} to add, ${count("change")} to change, ${count("remove")} to remove`;
}
