import { type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { hasMatchConditions } from "../../../core/kubernetes/versions.ts";
import { conditionOf, type ObservedCondition, observed, validity } from "../../../core/policy/condition.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import type { View } from "../../../core/view/view.ts";
import { MOST_ENTRIES } from "../ledger/project-usage.ts";
import { differences } from "../policy/extensions.ts";
import { USERS } from "../policy/limit.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { unenforcedBecause } from "../usage/enforced.ts";
import { type SubjectUsage, statesOf, subjectUsages } from "../usage/subject-usage.ts";

/** The status of the object that counts. */
export function limitsStatus(
  limits: ProjectLimits,
  problems: readonly Problem[],
  view: View,
  before: JsonObject,
  now: number,
): JsonObject {
  const { generation } = limits.ref;
  const usages = subjectUsages(view, limits);
  const observations = [
    validity(problems, "all limits are in use"),
    NOT_IGNORED,
    enforcement(limits, view),
    userApi(limits, view),
    namespacesOpen(limits, view),
    bestEffort(limits, usages),
    extended(limits),
  ];
  return besideOthers(before, {
    ...observed(generation),
    users: statesOf(usages),
    conditions: observations.map((one) => conditionOf(one, generation, before, now)),
  });
}

/** The status of an object with another name. */
export function ignoredStatus(generation: number | undefined, before: JsonObject, now: number): JsonObject {
  return besideOthers(before, {
    ...observed(generation),
    conditions: [conditionOf(IGNORED, generation, before, now)],
  });
}

/** The operator and usher share one status: fields that are not written here stay, in their order. */
function besideOthers(
  before: JsonObject,
  mine: JsonObject & { conditions: readonly JsonObject[] },
): JsonObject {
  const stored = listAt(before, "conditions");
  const typeOf = (one: Json) => stringAt(one, "type");
  const ours = new Map(mine.conditions.map((one) => [typeOf(one), one]));
  const added = mine.conditions.filter((one) => !stored.some((other) => typeOf(other) === typeOf(one)));
  const conditions = [...stored.map((one) => ours.get(typeOf(one)) ?? one), ...added];
  return { ...before, ...mine, conditions };
}

export const IGNORED: ObservedCondition = {
  type: "Ignored",
  holds: true,
  reason: "NotNamedCluster",
  message: "only the ProjectRequestLimit named cluster counts; this one has no effect",
};

const NOT_IGNORED: ObservedCondition = {
  type: "Ignored",
  holds: false,
  reason: "NamedCluster",
  message: "the object is in use",
};

function enforcement(limits: ProjectLimits, view: View): ObservedCondition {
  const type = "Enforced";
  const why = unenforcedBecause(limits, view);
  if (why !== undefined) return { type, holds: false, reason: "NothingToJudge", message: why };
  const judged = limits.namespaces ? "ProjectRequests and namespaces are" : "ProjectRequests are";
  return { type, holds: true, reason: "Judged", message: `${judged} judged` };
}

function userApi({ rules }: ProjectLimits, view: View): ObservedCondition {
  const type = "UserAPIMissing";
  if (view.served(USERS))
    return { type, holds: false, reason: "Served", message: "labels of users can be read" };
  const selectors = rules.filter(({ selector }) => selector.size > 0).length;
  const effect =
    selectors === 0
      ? "no rule depends on labels"
      : `users have no labels, so that ${selectors} rule(s) with a selector never match; use groups or users instead`;
  return {
    type,
    holds: true,
    reason: "NotServed",
    message: `the cluster does not serve ${USERS}: ${effect}`,
  };
}

function namespacesOpen(limits: ProjectLimits, view: View): ObservedCondition {
  const type = "NamespacesOpen";
  const closed = { type, holds: false, reason: "NotNeeded", message: "the webhook for namespaces is closed" };
  if (!limits.namespaces) return { ...closed, message: "namespaces are not judged" };
  if (!hasMatchConditions(view)) {
    const message =
      "the API server has no match conditions (Kubernetes before 1.28), so the webhook for namespaces is open, and updates of namespaces/status and namespaces/finalize are not checked";
    return { type, holds: true, reason: "NoMatchConditions", message };
  }
  if (limits.failurePolicy === "Fail") return { ...closed, reason: "Closed" };
  return { type, holds: true, reason: "FailurePolicyIgnore", message: "spec.failurePolicy is Ignore" };
}

/** Whether results differ from those of OpenShift 3.11. */
function extended(limits: ProjectLimits): ObservedCondition {
  const type = "Extended";
  const found = differences(limits);
  if (found.length === 0)
    return { type, holds: false, reason: "Off", message: "answers are those of OpenShift 3.11's plugin" };
  const message = `answers differ from those of OpenShift 3.11's plugin (extensions: Disabled ends that): ${found.join("; ")}`;
  return { type, holds: true, reason: "On", message };
}

/** A ledger's maximum; further entries are counted by the cluster's namespaces. */
function bestEffort({ count }: ProjectLimits, usages: readonly SubjectUsage[]): ObservedCondition {
  const type = "BestEffort";
  if (count === "BestEffort")
    return { type, holds: true, reason: "Configured", message: "spec.count is BestEffort" };
  const large = usages.filter((one) => one.max !== "unlimited" && one.count >= MOST_ENTRIES);
  if (large.length === 0)
    return { type, holds: false, reason: "Exact", message: "all projects are counted exactly" };
  const message = `${large.length} user(s) have ${MOST_ENTRIES} projects or more and are counted by best effort, the first is ${large[0]?.subject}`;
  return { type, holds: true, reason: "TooManyProjects", message };
}
