import type { JsonObject } from "../../../core/json.ts";
import { annotationsOf, isBeingDeleted, labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import type { Standing, StandingChange, StandingValue } from "../../../core/module/standing.ts";
import { byText } from "../../../core/order.ts";
import type { Path } from "../../../core/path.ts";
import { ruleIndexOf } from "../evaluator.ts";
import { recordOf } from "../ledger/record.ts";
import { describeChange, describeEntry } from "./describe.ts";
import { desiredOf } from "./desired.ts";
import { differenceOf, EVERY_TAINT, type NodeChange, taintsOn } from "./difference.ts";

/** Values that rules have set on each node, and pending changes. */
export function* standing(assembly: Assembly): Iterable<Standing> {
  const index = ruleIndexOf(assembly);
  if (index === undefined) return;
  const nodes = [...assembly.view.list("nodes")].filter((node) => !isBeingDeleted(node));
  for (const node of nodes.sort(byText(nameOf))) {
    const { changes } = differenceOf(node, desiredOf(node, index), index.settings, { ledger: EVERY_TAINT });
    const holds = holdsOf(node);
    if (changes.length + holds.length > 0)
      yield { object: { kind: "Node", name: nameOf(node) }, changes: changes.map(changeOf), holds };
  }
}

function changeOf(node: NodeChange): StandingChange {
  const { what, change, key, to, by } = node;
  return {
    path: placeOf(what, key),
    change,
    message: describeChange(node),
    ...(to === undefined ? {} : { to }),
    ...(by === undefined ? {} : { by }),
  };
}

/** By the record on the node, as far as the node still has the values. */
function holdsOf(node: JsonObject): StandingValue[] {
  const { labels, annotations, taints } = recordOf(node);
  const present = taintsOn(node);
  const held = (what: NodeChange["what"], key: string, value: unknown, by: string): StandingValue[] =>
    typeof value === "string"
      ? [{ path: placeOf(what, key), message: describeEntry(what, key, value), by }]
      : [];
  return [
    ...[...labels].flatMap(([key, by]) => held("label", key, labelsOf(node)?.[key], by)),
    ...[...annotations].flatMap(([key, { rule }]) =>
      held("annotation", key, annotationsOf(node)?.[key], rule),
    ),
    ...[...taints].flatMap(([key, { rule }]) => held("taint", key, present.get(key), rule)),
  ];
}

function placeOf(what: NodeChange["what"], key: string): Path {
  return what === "taint" ? ["spec", "taints", key] : ["metadata", `${what}s`, key];
}
