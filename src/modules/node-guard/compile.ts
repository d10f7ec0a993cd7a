import type { JsonObject } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import type { CompileContext, CompiledPolicy, LeftOut } from "../../core/module/compile.ts";
import { MODULE_LABEL } from "../../core/registration/managed-objects.ts";
import { labelled } from "../../core/registration/names.ts";
import { compileGroup, isOverridden, leftOpen } from "./fallback/compile.ts";
import type { Group } from "./groups/group.ts";
import { nodesOf } from "./groups/group-nodes.ts";
import { groupsOf } from "./groups/groups.ts";
import { isOn, MODULE } from "./settings.ts";

/** Each group with the policies of its fallback. Groups come from several sources, so they count as policies. */
export function compile({ view, installation, gates, now, files }: CompileContext): CompiledPolicy[] {
  if (!isOn(gates)) return [];
  // A disabled group says nothing that could be left out.
  const groups = groupsOf(view, installation, undefined).filter(
    ({ effectiveMode }) => effectiveMode !== "Disable",
  );
  return groups.map((group) => {
    const policy = { kind: "Group", name: group.name };
    // An override begins and ends by the clock, and a file does not.
    const action = !files && isOverridden(group.name, view, now) ? "Audit" : "Deny";
    if (!files)
      return {
        policy,
        objects: labelledAll(compileGroup(group, installation, action)),
        leftOut: leftOutOf(group),
      };
    const named = [...nodesOf(group, view)].map(nameOf).sort();
    return {
      policy,
      objects: compileGroup(group, installation, action, named),
      leftOut: [...leftOutOf(group), ...leftOutOfFiles(group, named)],
    };
  });
}

/** The nodes that a file can't know, and what can't open it. */
function leftOutOfFiles(group: Group, named: readonly string[]): LeftOut[] {
  if (group.effectiveMode !== "Enable" || group.labelSelector.kind === "nothing") return [];
  const nodes: LeftOut =
    named.length === 0
      ? {
          what: "assignments and bindings",
          why: "no node of the group is known, and files name nodes: add Nodes to the source, or use --cluster",
        }
      : {
          what: "nodes that join later",
          why: `files name the ${named.length === 1 ? "node" : `${named.length} nodes`} of the group that are known now: compile again when one joins`,
        };
  return [
    ...(group.rbac ? [] : [nodes]),
    { what: "overrides", why: "a NodeGuardOverride does not open what a file refuses; emergencyUsers pass" },
  ];
}

/** The labels by which the leader knows the objects of the fallback. */
export function labelledAll(objects: readonly JsonObject[]): JsonObject[] {
  return objects.map((object) => labelled(object, undefined, { [MODULE_LABEL]: MODULE }));
}

function leftOutOf(group: Group): LeftOut[] {
  if (group.effectiveMode !== "Enable")
    return [{ what: "the group", why: `its mode is ${group.effectiveMode}: it refuses nothing` }];
  if (group.labelSelector.kind === "nothing")
    return [{ what: "the group", why: "its selector selects no node" }];
  return [
    ...leftOpen(group).map((what) => ({
      what,
      why: "an in-tree policy can't evaluate it, and admits the pod",
    })),
    {
      what: "selectors and tolerations",
      why: "a pod that only selects protected nodes is admitted; its binding is refused",
    },
    ...(group.steering === "Disabled"
      ? []
      : [{ what: "steering", why: "pods are not given a node affinity that excludes protected nodes" }]),
  ];
}
