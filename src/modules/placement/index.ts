import { allow, deny } from "../../core/decision.ts";
import type { Finding, PolicyRef } from "../../core/finding.ts";
import { policyName } from "../../core/finding.ts";
import { quietNamespaces } from "../../core/installation.ts";
import { labelsOf } from "../../core/kubernetes/object.ts";
import { podTemplateOf, specPath, type WorkloadTable } from "../../core/kubernetes/workloads.ts";
import { type Context, defineModule } from "../../core/module.ts";
import { SelectorIndex } from "../../core/selector-index.ts";
import { CODES } from "./codes.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "./kinds.ts";
import { injectNodeSelector } from "./node-selector.ts";
import { statusPlanner } from "./plan.ts";
import type { PlacementPolicy } from "./policy.ts";
import { restoreNodeSelector } from "./restore.ts";
import { type Selection, select } from "./select.ts";
import { leftAlone } from "./target.ts";

/** Scheduling criteria, written into pods and pod templates by policy. */
export const placement = defineModule<PlacementPolicy>({
  name: "placement",
  summary: "writes scheduling criteria into pods and pod templates by policy",
  kinds: [clusterPodSchedulingPolicy, podSchedulingPolicy],
  reads: [
    {
      resource: "namespaces",
      group: "",
      version: "v1",
      kind: "Namespace",
      scope: "Cluster",
      keep: [["metadata", "labels"]],
    },
  ],
  hooks: (_view, installation) => [
    {
      name: "placement",
      module: "placement",
      phase: "mutate",
      rules: rulesFor(installation.workloads),
      failure: "open",
      // A slow answer delays every pod: measured, a webhook that took 3 s made a rollout of 1 s take 26.
      timeoutSeconds: 2,
      namespaces: { except: quietNamespaces(installation) },
      sideEffects: "NoneOnDryRun",
      reinvocation: "IfNeeded",
    },
  ],
  assemble: (policies) => {
    const index = new SelectorIndex(policies);
    return {
      mutate: (context) => place(context, index),
      update: (removed, added) => {
        for (const policy of removed) index.remove(policy);
        for (const policy of added) index.add(policy);
      },
    };
  },
  predecessors: [
    {
      name: "gardener-extension-kupid",
      meaning:
        "kupid is still at work here: it and usher both write scheduling criteria into the same pods, kupid by its own order of policies. Stop it once usher is ready: scale its Deployment to 0 and delete its webhook configurations",
    },
  ],
  planner: statusPlanner("placement", [clusterPodSchedulingPolicy, podSchedulingPolicy]),
  codes: CODES,
});

function place(context: Context, index: SelectorIndex<PlacementPolicy>) {
  const { request, object: draft, installation } = context;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || request.object === undefined) return allow();
  const template = podTemplateOf(draft.object, workload);
  const apart = leftAlone(draft.object, workload, installation.workloads);
  if (template === undefined || apart !== undefined) {
    sayOfAll(context, index, apart ?? "it has no pod template");
    return allow();
  }
  const spec = specPath(workload);
  if (request.operation === "UPDATE") {
    sayOfAll(context, index, "an update gets nothing new, only what it had and has lost");
    return allow(request.oldObject === undefined ? [] : restoreNodeSelector(draft, request.oldObject, spec));
  }
  const selection = select(index, labelsOf({ metadata: template.metadata ?? {} }), context);
  if ("need" in selection) return selection;
  const findings: Finding[] = unclearFindings(selection);
  const refused = selection.unclear.filter(({ policy }) => policy.failure === "Fail");
  if (refused.length > 0) return deny({ code: 403, reason: "Forbidden" }, findings);
  const setBy = new Map<string, PolicyRef>();
  for (const policy of selection.wanting) injectNodeSelector(draft, spec, policy, setBy, findings);
  return allow(findings);
}

/** Where no policy is tried, whoever asks why is told of each. */
function sayOfAll({ trace }: Context, index: SelectorIndex<PlacementPolicy>, why: string): void {
  if (trace !== undefined) for (const { ref } of index.items) trace({ policy: ref, applies: "not", why });
}

/** What can't be said to apply or not is never taken for "no": it is told, and the policy's failure mode decides. */
function unclearFindings({ unclear }: Selection): Finding[] {
  return unclear.map(({ policy, why, because }) => {
    const closed = policy.failure === "Fail";
    const name = policyName(policy.ref);
    return {
      policy: policy.ref,
      rule: "selection",
      outcome: closed ? "violated" : "failed",
      code: because === "namespace" ? "USHER-P02" : "USHER-P03",
      message: closed
        ? `policy ${name} may want this object, and refuses it since that can't be known: ${why}`
        : `policy ${name} was left out: ${why}`,
      ...(closed ? {} : { warn: 70 }),
      audit: { key: "unclear", value: name },
    };
  });
}

/** Pods when they are made; templates also when they change, to put back what a re-apply took out. */
function rulesFor(workloads: WorkloadTable) {
  const groups = new Map<string, { versions: Set<string>; resources: Set<string> }>();
  for (const { group, version, resource, template } of workloads.all) {
    if (template.length === 0) continue;
    const entry = groups.get(group) ?? { versions: new Set(), resources: new Set() };
    entry.versions.add(version);
    entry.resources.add(resource);
    groups.set(group, entry);
  }
  return [
    {
      groups: [""],
      versions: ["v1"],
      resources: ["pods"],
      operations: ["CREATE"] as const,
      scope: "Namespaced" as const,
    },
    ...[...groups].map(([group, { versions, resources }]) => ({
      groups: [group],
      versions: [...versions],
      resources: [...resources],
      operations: ["CREATE", "UPDATE"] as const,
      scope: "Namespaced" as const,
    })),
  ];
}
