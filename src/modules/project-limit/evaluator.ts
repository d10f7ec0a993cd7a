import { allow, type Result } from "../../core/decision/decision.ts";
import type { Context, Evaluator } from "../../core/module/module.ts";
import { decideCreation } from "./decision/decide-creation.ts";
import type { ProjectLimits } from "./policy/policy.ts";
import { decideNamespace, stampRequester } from "./requester/decide-namespace.ts";

/** The limits of the object named `cluster`; without one everything passes. */
export function evaluatorOf(limits: ProjectLimits | undefined): Evaluator<ProjectLimits> {
  if (limits === undefined) return { mutate: () => allow(), validate: () => allow() };
  return {
    mutate: (context) => {
      if (!isNamespace(context)) return allow();
      if (!limits.namespaces) return unlimited(context, limits);
      const mark = context.draft.mark();
      const result = stampRequester(context, limits);
      const stamped = context.draft.mark() > mark;
      context.trace?.({
        policy: limits.ref,
        rule: "requester",
        applies: stamped ? "applies" : "not",
        why: stamped ? "usher writes who requested the namespace" : "the requester may stay as it is",
      });
      return result;
    },
    validate: (context) => {
      if (isNamespace(context))
        return limits.namespaces ? decideNamespace(context, limits) : unlimited(context, limits);
      const { username, groups } = context.request.userInfo;
      return isProjectRequest(context) && context.request.operation === "CREATE"
        ? decideCreation(context, limits, { username, groups })
        : allow();
    },
  };
}

function unlimited({ trace }: Context, { ref: policy }: ProjectLimits): Result {
  trace?.({ policy, applies: "not", why: "it limits no namespaces: spec.namespaces is not set" });
  return allow();
}

function isNamespace({ request: { resource, kind } }: Context): boolean {
  return resource.group === "" && resource.resource === "namespaces" && kind.kind === "Namespace";
}

/** As upstream: any request other than a ProjectRequest passes. */
function isProjectRequest({ request: { resource, kind, subResource } }: Context): boolean {
  return (
    resource.group === "project.openshift.io" &&
    resource.resource === "projectrequests" &&
    subResource === "" &&
    kind.kind === "ProjectRequest"
  );
}
