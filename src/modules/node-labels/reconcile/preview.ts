import type { Assembly } from "../../../core/evaluate/assembly.ts";
import { isBeingDeleted, nameOf } from "../../../core/kubernetes/object.ts";
import type { PreviewedChange } from "../../../core/module/preview.ts";
import { desiredOf } from "../desired/desired.ts";
import { differenceOf, keyAndEffect, type NodeChange, type TaintLedger } from "../desired/difference.ts";
import { ruleIndexOf } from "../evaluator.ts";

/** A preview shows every possible change: there is no grace period, and every recorded taint counts as usher's. */
const EVERY_TAINT: TaintLedger = { includes: () => true };

/** What would be added, changed and removed on which node, in the order of their names. */
export function* previewNodes(assembly: Assembly): Iterable<PreviewedChange> {
  const index = ruleIndexOf(assembly);
  if (index === undefined) return;
  const nodes = [...assembly.view.list("nodes")].filter((node) => !isBeingDeleted(node));
  nodes.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  for (const node of nodes) {
    const { changes } = differenceOf(node, desiredOf(node, index), index.settings, { ledger: EVERY_TAINT });
    for (const change of changes) yield { kind: "Node", name: nameOf(node), ...spelled(change) };
  }
}

/** A taint as kubectl writes it: `dedicated=edge:NoSchedule`. */
function spelled({
  what,
  change,
  key: id,
  from,
  to,
  by,
}: NodeChange): Omit<PreviewedChange, "kind" | "name"> {
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
