import type { Judgement, Side } from "./judgement.ts";

/** More names help no reader. */
const MOST_NODES = 3;

/** What failed, the group, the node and the fix; never who is authorised, and the same at every retry. */
export function messageOf(judgement: Judgement, subject: string): string {
  const { group, rule } = judgement;
  const failing = failingSides(judgement);
  const fine = fineSides(judgement);
  const why = `${failing.map(({ name }) => name).join(" and ")} ${failing.length > 1 ? "are" : "is"} not authorised${
    fine.length === 0 ? "" : ` (${fine.map(({ name }) => name).join(", ")} is)`
  }`;
  if (!judgement.refused) return `${subject} ${CLAIMED[rule]} ${whereOf(judgement)}: ${why}. ${FIXES[rule]}`;
  return `${subject} ${CLAIMED[rule]} ${whereOf(judgement)}: ${why}. ${FIXES[rule]}, or ask a cluster administrator to authorise ${lists(judgement)} in group ${group.name}`;
}

/** The same in a line that clients show whole. */
export function warningOf(judgement: Judgement): string {
  const failing = failingSides(judgement)
    .map(({ name }) => name)
    .join(" and ");
  return `${SHORT[judgement.rule]} protected group ${judgement.group.name}: ${failing} not authorised`;
}

function whereOf({ nodes, group, node, rule }: Judgement): string {
  const of = `protected group "${group.name}"`;
  // The subject is the node.
  if (rule === "node-labels") return of;
  if (node === "unknown") return `node ${namesOf(nodes)}, which is not known and counts as a member of ${of}`;
  if (node === "new")
    return `node ${namesOf(nodes)}, which has just joined and may become a member of ${of}; it is tried again after a while`;
  if (nodes.length === 0 || rule === "possible") return `nodes of ${of}`;
  return `${nodes.length === 1 ? "node" : "nodes"} ${namesOf(nodes)} of ${of}`;
}

function namesOf(nodes: readonly string[]): string {
  const rest = nodes.length - MOST_NODES;
  return `${nodes.slice(0, MOST_NODES).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
}

function failingSides({ actor, pod }: Judgement): Side[] {
  return [actor, pod].flatMap((side) => (side !== undefined && side.by === undefined ? [side] : []));
}

function fineSides({ actor, pod }: Judgement): Side[] {
  return [actor, pod].flatMap((side) => (side?.by === undefined ? [] : [side]));
}

function lists({ actor, pod }: Judgement): string {
  const parts = [
    ...(actor !== undefined && actor.by === undefined ? ["the user (assigners)"] : []),
    ...(pod !== undefined && pod.by === undefined ? ["the pod's service account (workloads)"] : []),
  ];
  return parts.join(" and ");
}

const CLAIMED: Readonly<Record<Judgement["rule"], string>> = {
  assign: "may not be assigned to",
  bind: "may not be bound to",
  pinned: "can only run on",
  exclusive: "can only run on",
  implied: "requires labels of",
  retain: "may not be kept by a toleration on",
  possible: "may be refused on",
  reachable: "could be scheduled onto",
  "node-labels": "may not leave",
  access: "may not be accessed on",
};

const FIXES: Readonly<Record<Judgement["rule"], string>> = {
  assign: "Remove spec.nodeName",
  bind: "Let the pod run on another node",
  pinned: "Remove the node's name from the required node affinity",
  exclusive: "Remove the nodeSelector or node affinity that selects them",
  implied: "Remove the nodeSelector or node affinity that requires them",
  retain: "Leave the tolerations as they are",
  reachable:
    "Exclude them by a required node affinity that is not too large when the pod is created, or leave the toleration out",
  possible: "Exclude them by a required node affinity, or drop the toleration",
  "node-labels": "Keep the labels",
  access: "Use a pod on another node",
};

const SHORT: Readonly<Record<Judgement["rule"], string>> = {
  assign: "nodeName is in",
  bind: "target is in",
  pinned: "pinned to",
  exclusive: "runs only on",
  implied: "requires",
  retain: "stays on",
  possible: "may reach",
  reachable: "could reach",
  "node-labels": "leaves",
  access: "access to",
};
