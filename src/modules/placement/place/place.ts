import { allow, type Result } from "../../../core/evaluate/decision.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { podTemplateOf, specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Site } from "../merge/site.ts";
import { leftAlone } from "../select/target.ts";
import { isPlaced } from "../settings.ts";
import { placeUpdated } from "../update/update.ts";
import { placeCreated } from "./create.ts";
import { type Policies, traceAll } from "./decision.ts";

/** Places one object: on CREATE by all policies that select it, on UPDATE by what it had and by policies that inject on update. */
export function place(context: Context, policies: Policies): Result {
  const { request, object: draft, installation } = context;
  const { operation, object, oldObject } = request;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || object === undefined) return allow();
  if (!isPlaced(workload, installation)) {
    traceAll(context, policies, "its kind is not among modules.placement.resources of the configuration");
    return allow();
  }
  const template = podTemplateOf(draft.object, workload);
  const exempt = leftAlone(draft.object, workload, installation.workloads, operation);
  if (template === undefined || exempt !== undefined) {
    traceAll(context, policies, exempt ?? "it has no pod template");
    return allow();
  }
  const labels = labelsOf({ metadata: template.metadata ?? {} });
  const site: Site = { draft, workload, spec: specPath(workload), labels };
  if (operation !== "UPDATE") return placeCreated(context, site, policies);
  if (oldObject !== undefined) return placeUpdated(context, site, policies, oldObject);
  traceAll(context, policies, "an update without the stored object gets nothing");
  return allow();
}
