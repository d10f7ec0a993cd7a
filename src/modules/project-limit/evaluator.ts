import { allow, type Result } from "../../core/evaluate/decision.ts";
import type { Context, Evaluator } from "../../core/module/module.ts";
import { judgeCreation } from "./decision/judge.ts";
import type { Limits } from "./policy/policy.ts";
import { judgeNamespace } from "./requester/judge-namespace.ts";
import { stampRequester } from "./requester/stamp.ts";

/** What the object named `cluster` limits; without one everything passes. */
export function evaluatorOf(limits: Limits | undefined): Evaluator<Limits> {
  if (limits === undefined) return { mutate: () => allow(), validate: () => allow() };
  return {
    mutate: (context) =>
      limits.namespaces && isNamespace(context) ? stampRequester(context, limits) : allow(),
    validate: (context) => validate(context, limits),
  };
}

function validate(context: Context, limits: Limits): Result {
  if (isNamespace(context)) return limits.namespaces ? judgeNamespace(context, limits) : allow();
  const { request } = context;
  const { username, groups } = request.userInfo;
  return isProjectRequest(context) && request.operation === "CREATE"
    ? judgeCreation(context, limits, { username, groups })
    : allow();
}

function isNamespace({ request: { resource, kind } }: Context): boolean {
  return resource.group === "" && resource.resource === "namespaces" && kind.kind === "Namespace";
}

/** As upstream: what is no ProjectRequest passes. */
function isProjectRequest({ request: { resource, kind, subResource } }: Context): boolean {
  return (
    resource.group === "project.openshift.io" &&
    resource.resource === "projectrequests" &&
    subResource === "" &&
    kind.kind === "ProjectRequest"
  );
}
