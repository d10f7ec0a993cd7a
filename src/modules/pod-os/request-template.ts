import { isBeingDeleted } from "../../core/kubernetes/object.ts";
import {
  isPod,
  type PodTemplate,
  podTemplateOf,
  type WorkloadKind,
} from "../../core/kubernetes/workloads.ts";
import type { Context } from "../../core/module/module.ts";

/** The pod, or the template, that a request is about. */
export interface RequestTemplate {
  readonly workload: WorkloadKind;
  readonly template: PodTemplate;
  /** Whether it is a pod itself. */
  readonly isPod: boolean;
}

/**
 * A pod on CREATE; a template on CREATE and if an UPDATE changes it. Otherwise `undefined`: stored objects are
 * evaluated and edited only when they change, so that no status, annotation or finalizer update is refused and nothing
 * rolls out.
 */
export function changedTemplate(context: Context): RequestTemplate | undefined {
  const found = requestTemplate(context);
  return found !== undefined && isChanged(context, found) ? found : undefined;
}

/** Whether a template is another than the stored one. Comparing them costs more than looking at the few fields of an OS. */
export function isChanged({ request, draft }: Context, { workload }: RequestTemplate): boolean {
  return request.operation === "CREATE" || draft.changed([workload.template]);
}

/** The same, also if the template is unchanged. */
export function requestTemplate({ request, draft, installation }: Context): RequestTemplate | undefined {
  const { resource, operation, subResource } = request;
  const workload = installation.workloads.byResource(resource.group, resource.resource);
  if (workload === undefined || subResource !== "" || isBeingDeleted(draft.object)) return undefined;
  const ofPod = isPod(workload);
  if (operation !== "CREATE" && (operation !== "UPDATE" || ofPod)) return undefined;
  const template = podTemplateOf(draft.object, workload);
  return template === undefined ? undefined : { workload, template, isPod: ofPod };
}
