import { at, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { compilePodPlacement, matchesPlacement } from "../../../core/kubernetes/selectors/node-selector.ts";
import { describeTaint, type Taint, taintsOf } from "../../../core/kubernetes/taints.ts";
import { tolerates } from "../../../core/kubernetes/tolerations.ts";
import { NODES, type Read } from "../../../core/module/module.ts";
import { idle, PROBLEM, type Problem } from "../../../core/policy/problem.ts";
import type { View } from "../../../core/view/view.ts";

export const NODE_READ: Read = {
  ...NODES,
  keep: [
    ["metadata", "labels"],
    ["spec", "taints"],
  ],
  optional: true,
  why: "count the nodes that a policy selects",
};

export interface SelectedNodes {
  readonly selected: number;
  readonly total: number;
}

/** The number of nodes that match a policy's requirements. `undefined` if it has none about nodes, or if no node is known. */
export function selectedNodes(spec: JsonObject, view: View): SelectedNodes | undefined {
  const total = view.count(NODE_READ.resource);
  const { nodeSelector, terms } = compilePodPlacement(spec);
  const name = stringAt(spec, "nodeName") ?? "";
  const isNarrow =
    name !== "" || terms !== undefined || nodeSelector === undefined || nodeSelector.length > 0;
  if (total === 0 || !isNarrow) return undefined;
  let selected = 0;
  for (const node of view.list(NODE_READ.resource)) {
    const like = { name: nameOf(node), labels: labelsOf(node) };
    if ((name === "" || like.name === name) && matchesPlacement({ nodeSelector, terms }, like)) selected++;
  }
  return { selected, total };
}

/** `selects 0 of 3 nodes` */
export function describeNodes({ selected, total }: SelectedNodes): string {
  return `selects ${selected} of ${total} nodes`;
}

export const PENDING = "pods that get it stay pending until such a node joins";

/** For a valid policy: required nodes that do not exist. Nodes come and go, so it stays a warning. */
export function nodeWarnings(object: JsonObject, view: View): Problem[] {
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  const nodes = selectedNodes(spec, view);
  return [
    ...(nodes?.selected === 0
      ? [idle(PROBLEM.matchesNothing, ["spec"], `${describeNodes(nodes)}: ${PENDING}`)]
      : []),
    ...unusedTolerations(spec, view),
  ];
}

/** Kubernetes sets such taints by the state of a node, so mostly no node has them. */
const CONDITION_TAINT = /^node\.(cloudprovider\.)?kubernetes\.io\//;

function unusedTolerations(spec: JsonObject, view: View): Problem[] {
  const tolerations = listAt(spec, "tolerations");
  if (tolerations.length === 0 || view.count(NODE_READ.resource) === 0) return [];
  const taints = new Map<string, Taint>();
  for (const node of view.list(NODE_READ.resource))
    for (const taint of taintsOf(node)) taints.set(describeTaint(taint), taint);
  return tolerations.flatMap((toleration, i) => {
    const key = at(toleration, "key");
    if (typeof key !== "string" || key === "" || CONDITION_TAINT.test(key)) return [];
    if ([...taints.values()].some((taint) => tolerates(toleration, taint))) return [];
    return [idle(PROBLEM.noEffect, ["spec", "tolerations", i], `tolerates a taint that no node has: ${key}`)];
  });
}
