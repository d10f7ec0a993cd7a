import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { Read } from "../../../core/module/module.ts";
import { likelyMistake, PROBLEM, type Problem } from "../../../core/policy/problem.ts";
import type { View } from "../../../core/view/view.ts";
import { USERS } from "../policy/limit.ts";
import { type ProjectLimits, SINGLETON } from "../policy/policy.ts";
import { PROJECTS } from "../projects.ts";

/** OpenShift's API for users that may not create namespaces. It has no objects to read. */
export const PROJECT_REQUESTS: Read = {
  resource: "projectrequests",
  group: "project.openshift.io",
  version: "v1",
  kind: "ProjectRequest",
  scope: "Cluster",
  keep: [],
  presence: true,
  optional: true,
  why: "know whether there are ProjectRequests to limit",
};

const RESOURCE = `${PROJECT_REQUESTS.resource}.${PROJECT_REQUESTS.group}`;

/** Why a ProjectRequestLimit limits nothing: no request that it covers can be made. Unknown if the view has no cluster. */
export function unenforcedBecause(
  { namespaces }: Pick<ProjectLimits, "namespaces">,
  view: View,
): string | undefined {
  // Files show OpenShift by its users: a ProjectRequest is never stored.
  if (namespaces || !view.served(PROJECTS.resource) || view.served(RESOURCE) || view.served(USERS))
    return undefined;
  return "nothing is limited: the cluster does not serve ProjectRequests, and namespaces are not judged; add spec.namespaces: {} to limit namespaces";
}

export function checkEnforced(object: JsonObject, view: View): Problem[] {
  const spec = isObject(object["spec"]) ? object["spec"] : {};
  if ((stringAt(object, "metadata", "name") ?? SINGLETON) !== SINGLETON) return [];
  const why = unenforcedBecause({ namespaces: isObject(spec["namespaces"]) }, view);
  return why === undefined ? [] : [{ ...likelyMistake(["spec"], why), code: PROBLEM.noEffect }];
}
