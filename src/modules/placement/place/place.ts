import { allow, type Result } from "../../../core/evaluate/decision.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { podTemplateOf, specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import {
  conclude,
  mergeAll,
  type Policies,
  refuses,
  type Site,
  sayOfAll,
  unclearFindings,
} from "../merge/merge-policies.ts";
import { select } from "../select/select.ts";
import { leftAlone, notTargeted } from "../select/target.ts";
import { opennessOf } from "../update/mutability.ts";
import { consumeReapply } from "../update/reapply.ts";
import { updated } from "../update/update.ts";

/** Places one object: when it is made by all policies that want it, when it changes by what it had and by those that say so. */
export function place(context: Context, policies: Policies): Result {
  const { request, object: draft, installation } = context;
  const { operation, object, oldObject } = request;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || object === undefined) return allow();
  const template = podTemplateOf(draft.object, workload);
  const apart = leftAlone(draft.object, workload, installation.workloads, operation);
  if (template === undefined || apart !== undefined) {
    sayOfAll(context, policies, apart ?? "it has no pod template");
    return allow();
  }
  const labels = labelsOf({ metadata: template.metadata ?? {} });
  const site: Site = { draft, workload, spec: specPath(workload), labels };
  if (operation !== "UPDATE") return created(context, site, policies);
  if (oldObject !== undefined) return updated(context, site, policies, oldObject);
  sayOfAll(context, policies, "an update without the stored object gets nothing");
  return allow();
}

function created(context: Context, site: Site, policies: Policies): Result {
  const start = site.draft.mark();
  const selection = select(policies.all, site.labels, context, (policy) =>
    notTargeted(policy, site.workload),
  );
  if ("need" in selection) return selection;
  const findings = unclearFindings(selection);
  if (refuses(findings)) return conclude(site.draft, start, findings);
  const openness = opennessOf(site.workload, undefined);
  // What is made is placed anyway; a request to do so is not to stay in the object.
  consumeReapply(site.draft);
  const limits = "limits" in openness ? openness.limits : {};
  return (
    mergeAll(context, site, limits, selection.wanting, findings) ?? conclude(site.draft, start, findings)
  );
}
