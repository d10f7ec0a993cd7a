import { isGatedExpression } from "../../../core/kubernetes/pod-state.ts";
import { SENT_PROVENANCE } from "../../../core/provenance/match-condition.ts";
import { MOST_PARTS } from "../claims/pod-nodes.ts";
import { PLACEMENT_FIELDS } from "../claims/validate.ts";
import type { Group } from "../groups/group.ts";

/** Conditions that the API server evaluates, to save calls. Each depends only on what it names. */
interface Condition {
  readonly name: string;
  readonly expression: string;
}

const NODE_NAME = 'object.spec.?nodeName.orValue("")';
const TARGET_NAME = 'object.?target.name.orValue("")';

export const ASSIGNED: Condition = { name: "assigned", expression: `${NODE_NAME} != ""` };

export const UNASSIGNED: Condition = { name: "unassigned", expression: `${NODE_NAME} == ""` };

/** A steered pod has an affinity; one that is too large to steer may have only tolerations. */
export const SELECTS_NODES: Condition = {
  name: "selects-nodes",
  expression: `has(object.spec.nodeSelector) || has(object.spec.affinity) || object.spec.?tolerations.orValue([]).size() > ${MOST_PARTS}`,
};

export const NOT_DELETED: Condition = {
  name: "not-being-deleted",
  expression: "!has(object.metadata.deletionTimestamp)",
};

export const PLACEMENT_CHANGED: Condition = {
  name: "placement-changed",
  expression: [...new Set(PLACEMENT_FIELDS.map(([, field]) => field))]
    .map((field) => `object.spec.?${field} != oldObject.spec.?${field}`)
    .join(" || "),
};

/** The API server lets the node affinity change only in gated pods. */
export const STEERABLE_UPDATE: Condition = {
  name: "steerable",
  expression: `${SENT_PROVENANCE} || (${isGatedExpression("oldObject")} && (${PLACEMENT_CHANGED.expression}))`,
};

/** Only labels that affect a group, through either URL: heartbeats, cordons and other labels cause no call. */
export function labelsChanged(groups: readonly Pick<Group, "labelSelector">[]): Condition {
  const keys = groups.flatMap(({ labelSelector }) =>
    labelSelector.kind === "requirements" ? labelSelector.requirements.map(({ key }) => key) : [],
  );
  const changes = [...new Set(keys)].sort().map((key) => {
    const label = `metadata.?labels[?${JSON.stringify(key)}]`;
    return `object.${label} != oldObject.${label}`;
  });
  return { name: "labels-changed", expression: changes.length === 0 ? "false" : changes.join(" || ") };
}

/** Only nodes of these names, of a pod that is created or of a Binding. */
export function onNodes(of: "pod" | "binding", names: readonly string[]): Condition {
  const name = of === "pod" ? NODE_NAME : TARGET_NAME;
  return { name: "guarded-node", expression: `${name} in ${JSON.stringify(names)}` };
}

/** With many names there are several such conditions, and all must hold. */
export function onOtherNodes(of: "pod" | "binding", names: readonly string[], part = 0): Condition {
  const name = part === 0 ? "other-node" : `other-node-${part + 1}`;
  return { name, expression: `!(${onNodes(of, names).expression})` };
}

/** CEL parses expressions of up to 100,000 characters by default, and an expression that is not parsed is refused. */
const MOST_CHARACTERS = 90_000;

/** Names in as many lists as conditions need, each in the given order. */
export function namesByCondition(names: readonly string[]): string[][] {
  const lists: string[][] = [];
  let room = 0;
  for (const name of names) {
    const length = JSON.stringify(name).length + 1;
    if (length > room) {
      lists.push([]);
      room = MOST_CHARACTERS;
    }
    lists.at(-1)?.push(name);
    room -= length;
  }
  return lists;
}
