import type { JsonObject } from "../../core/json.ts";
import type { CompileContext, CompiledPolicy, LeftOut } from "../../core/module/compile.ts";
import { MODULE_LABEL } from "../../core/registration/managed-objects.ts";
import { labelled } from "../../core/registration/names.ts";
import { compileGroup, isOverridden, leftOpen } from "./fallback/compile.ts";
import type { Group } from "./groups/group.ts";
import { groupsOf } from "./groups/groups.ts";
import { isOn, MODULE } from "./settings.ts";

/** Each group with the policies of its fallback. Groups come from several sources, so they count as policies. */
export function compile({ view, installation, gates, now }: CompileContext): CompiledPolicy[] {
  if (!isOn(gates)) return [];
  return groupsOf(view, installation, undefined).map((group) => ({
    policy: { kind: "Group", name: group.name },
    objects: labelledAll(
      compileGroup(group, installation, isOverridden(group.name, view, now) ? "Audit" : "Deny"),
    ),
    leftOut: leftOutOf(group),
  }));
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
