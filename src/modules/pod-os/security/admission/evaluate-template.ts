import { allow, type Decision, deny, type Result } from "../../../../core/decision/decision.ts";
import { resourceName } from "../../../../core/decision/request.ts";
import { nameIn } from "../../../../core/decision/status.ts";
import { controllerOf, isBeingDeleted } from "../../../../core/kubernetes/object.ts";
import { isBuiltIn, podTemplateOf, type WorkloadKind } from "../../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../../core/module/module.ts";
import { settingsOf } from "../../settings.ts";
import type { Exceptions } from "../exceptions/exceptions.ts";
import { errorCount } from "./counts.ts";
import { annotation, exempted, labelErrors } from "./evaluate-pod.ts";
import { exemptPod, exemptRequest, ownerOf } from "./exemptions.ts";
import { namespacePolicy } from "./namespace-policy.ts";
import { evaluateModes, withEvent } from "./verdict.ts";

/**
 * Reports violations of a template's pods, as the plugin PodSecurity does, and refuses it if templates are denied. The
 * API server's own messages about built-in kinds are not repeated. A template that can't be evaluated passes.
 */
export function evaluateTemplate(context: Context, exceptions: Exceptions): Result {
  const { request, draft, view, installation } = context;
  const { group, resource } = request.resource;
  const workload = installation.workloads.byResource(group, resource);
  if (workload === undefined || request.subResource !== "") return allow();
  const settings = settingsOf(installation).podSecurity;
  const informs = settings.mode === "Replace" || !isBuiltIn(workload);
  const denies = settings.templates === "Deny" && isDeniable(context, workload);
  if (!informs && !denies) return allow();
  const { configuration } = settings;
  const exempt = exemptRequest(request, configuration);
  if (exempt !== undefined) return exempted(context, exempt);
  const policy = namespacePolicy(context, configuration);
  if ("need" in policy) return policy;
  if ("failed" in policy) return undecided(context, policy.failed);
  const { enforce, audit, warn, errors } = policy;
  const modes = { ...(informs ? { audit, warn } : {}), ...(denies ? { enforce } : {}) };
  if (errors.length === 0 && Object.values(modes).every(({ level }) => level === "privileged"))
    return allow();
  const template = podTemplateOf(draft.object, workload);
  if (template === undefined) return allow();
  const { metadata = {}, spec } = template;
  if (spec === undefined) return undecided(context, "failed to extract pod template");
  const exemptClass = exemptPod(spec, configuration);
  if (exemptClass !== undefined) return exempted(context, exemptClass);
  const subject = { metadata, spec, path: template.path };
  const verdict = evaluateModes(context, exceptions, settings, modes, subject);
  const notes = informs ? labelErrors(policy) : [];
  const counts = [...verdict.counts, ...(errors.length > 0 ? [errorCount(request, false)] : [])];
  if (verdict.refused === undefined) return allow([...notes, ...verdict.findings], undefined, counts);
  const name = JSON.stringify(nameIn(request.name, request.object));
  const message = `${resourceName(request.resource)} ${name} is forbidden: ${verdict.refused}`;
  const owner = ownerOf(request, view);
  const findings = withEvent(verdict.findings, "PodSecurityViolation", message, owner);
  return deny({ code: 403, reason: "Forbidden", message }, [...findings, ...notes], counts);
}

/**
 * A controller's own updates and the removal of finalizers must pass: only a changed template is refused, and never one
 * that is being deleted or belongs to a controller, which would only retry.
 */
function isDeniable({ draft }: Context, { template }: WorkloadKind): boolean {
  return (
    draft.changed([template]) && !isBeingDeleted(draft.object) && controllerOf(draft.object) === undefined
  );
}

function undecided({ request }: Context, message: string): Decision {
  return allow([annotation("error", message)], undefined, [errorCount(request, true)]);
}
