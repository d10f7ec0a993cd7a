import { allow, type Result } from "../../../core/evaluate/decision.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Group } from "../groups/group.ts";
import { decideAccess } from "./access.ts";
import { decideBind } from "./bind.ts";
import { decideNodeLabels } from "./node-labels.ts";
import { decidePodCreate, decidePodUpdate } from "./pods.ts";
import { decideTemplate } from "./templates.ts";

/** The groups that a request is judged by: those in force, and those that an override put out of force, which is reported. */
export function judgingGroups(groups: readonly Group[]): readonly Group[] {
  return groups.filter(
    ({ effectiveMode, override, mode }) =>
      effectiveMode !== "Disable" || (override !== undefined && mode !== "Disable"),
  );
}

/** Judges a request by what it is about. */
export function validate(context: Context, all: readonly Group[]): Result {
  const groups = judgingGroups(all);
  if (groups.length === 0) return allow();
  const { resource, subResource, operation } = context.request;
  if (resource.group !== "") return decideTemplate(context, groups);
  switch (resource.resource) {
    case "bindings":
      return operation === "CREATE" ? decideBind(context, groups) : allow();
    case "nodes":
      return operation === "UPDATE" ? decideNodeLabels(context, groups) : allow();
    case "pods":
      if (subResource === "binding") return decideBind(context, groups);
      if (subResource !== "") return decideAccess(context, groups);
      if (operation === "CREATE") return decidePodCreate(context, groups);
      return operation === "UPDATE" ? decidePodUpdate(context, groups) : allow();
    default:
      return decideTemplate(context, groups);
  }
}
