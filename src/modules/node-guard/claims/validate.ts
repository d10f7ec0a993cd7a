import { allow, type Result } from "../../../core/decision/decision.ts";
import { at, isObject, type JsonObject } from "../../../core/json.ts";
import { isBeingDeleted } from "../../../core/kubernetes/object.ts";
import { isBound } from "../../../core/kubernetes/pod-state.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import type { Group } from "../groups/group.ts";
import { decideAccess } from "./access.ts";
import { decideAssign } from "./assign.ts";
import { decideBind } from "./bind.ts";
import { accountOf, describePod, type GuardedPod } from "./evaluate-claim.ts";
import { decideNodeLabels } from "./node-labels.ts";
import { decideRetain } from "./retain.ts";
import { decideSelection } from "./selection.ts";
import { decideTemplate } from "./template.ts";

/** Pods that are created with a node, and those without. */
export const ASSIGN_HOOK = "node-guard-assign";
export const PODS_HOOK = "node-guard-pods";

/** The parts of a pod that determine where it runs. */
export const PLACEMENT_FIELDS: readonly Path[] = [
  ["spec", "nodeName"],
  ["spec", "nodeSelector"],
  ["spec", "affinity", "nodeAffinity"],
  ["spec", "tolerations"],
  ["spec", "schedulingGates"],
];

/** The groups that count for a request: those in force, and those that an override put out of force, which is reported. */
function countingGroups(groups: readonly Group[]): readonly Group[] {
  return groups.filter(
    ({ effectiveMode, override, mode }) =>
      effectiveMode !== "Disable" || (override !== undefined && mode !== "Disable"),
  );
}

/** Finds the claims of a request by its resource, and decides. */
export function validate(context: Context, all: readonly Group[]): Result {
  const groups = countingGroups(all);
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

/** A created pod. Each of the two hooks answers for its own pods, also if the API server does not evaluate their conditions. */
function decidePodCreate(context: Context, groups: readonly Group[]): Result {
  const pod = context.draft.object;
  const subject = podSubject(context, pod);
  if (hasNode(pod)) return context.hook === PODS_HOOK ? allow() : decideAssign(context, groups, pod, subject);
  return context.hook.startsWith(ASSIGN_HOOK) ? allow() : decideSelection(context, groups, pod, subject);
}

/**
 * An updated pod. Only if it changes its placement: finalizers, labels and images of a misplaced pod do not matter
 * here, otherwise the pod could never be deleted.
 */
function decidePodUpdate(context: Context, groups: readonly Group[]): Result {
  const { object: pod, old } = context.draft;
  if (isBeingDeleted(pod) || !context.draft.changed(PLACEMENT_FIELDS)) return allow();
  const subject = podSubject(context, pod);
  if (hasNode(pod) && (old === undefined || !isBound(old)))
    return decideAssign(context, groups, pod, subject);
  return isBound(pod)
    ? decideRetain(context, groups, pod, subject)
    : decideSelection(context, groups, pod, subject);
}

function podSubject({ request }: Context, pod: JsonObject): GuardedPod {
  const { namespace } = request;
  return { request, name: describePod(request), namespace, account: accountOf(specOf(pod)) };
}

/** Any value except absent or empty: the claim refuses a value that is not a string. */
function hasNode(pod: JsonObject): boolean {
  const name = at(pod, "spec", "nodeName");
  return name !== undefined && name !== null && name !== "";
}

function specOf(pod: JsonObject | undefined): JsonObject | undefined {
  const spec = at(pod, "spec");
  return isObject(spec) ? spec : undefined;
}
