import { exemptNamespaces, type Installation } from "../../../core/installation/installation.ts";
import { isGatedExpression } from "../../../core/kubernetes/pod-state.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import { isPod } from "../../../core/kubernetes/workloads.ts";
import type { Hook, Rule } from "../../../core/module/hook.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import { PROVENANCE } from "../../../core/provenance/annotation.ts";
import { carries, SENT_PROVENANCE } from "../../../core/provenance/match-condition.ts";
import { REAPPLY } from "../../../core/provenance/reapply.ts";
import type { View } from "../../../core/view/view.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { placedWorkloads } from "../settings.ts";
import { closedHooks } from "./closed-hooks.ts";
import { enforcementHooks } from "./enforcement-hooks.ts";

/** Every hook for the current policies: those that place, their fail-closed shadow hooks, and the validating ones. */
export function allHooks(
  policies: readonly PlacementPolicy[],
  view: View,
  installation: Installation,
): Hook[] {
  const placing = placementHooks(policies, view, installation);
  const rules = placing.find(({ name }) => name === "placement")?.rules ?? [];
  return [
    ...closedHooks(policies, view, installation, placing),
    ...enforcementHooks(policies, view, installation, rules),
  ];
}

const COMMON = {
  module: "placement",
  phase: "mutate",
  failure: "open",
  // A slow answer delays every pod: measured, a webhook that took 3 s made a rollout of 1 s take 26.
  timeoutSeconds: 2,
  sideEffects: "NoneOnDryRun",
  reinvocation: "IfNeeded",
} as const;

const PODS = { groups: [""], versions: ["v1"], resources: ["pods"], scope: "Namespaced" } as const;

/**
 * Pods at creation, templates also when they change; changed pods only if that can matter. Without any policy only
 * objects with usher's annotations matter: injections of deleted policies are kept or restored, and a forged annotation
 * is removed.
 */
function placementHooks(
  policies: readonly PlacementPolicy[],
  view: View,
  installation: Installation,
): Hook[] {
  const namespaces = { except: exemptNamespaces(installation) };
  const workloads = placedWorkloads(installation);
  const pods: readonly Omit<Rule, "operations">[] = workloads.some(isPod) ? [PODS] : [];
  const rules = [
    ...pods.map((rule) => ({ ...rule, operations: ["CREATE"] as const })),
    ...templateRules(workloads),
  ];
  const tooLarge = policies.some(({ onConflict }) => onConflict === "Refuse") ? "deny" : "allow";
  const injecting = policies.some(({ onUpdate }) => onUpdate === "Inject");
  return [
    {
      ...COMMON,
      tooLarge,
      name: "placement",
      namespaces,
      rules,
      ...(hasPolicies(view) ? {} : { conditions: [{ name: WITHOUT_POLICY, expression: ANNOTATED }] }),
    },
    {
      ...COMMON,
      tooLarge,
      name: "placement-pod-updates",
      namespaces,
      rules: pods.map((rule) => ({ ...rule, operations: ["UPDATE"] as const })),
      conditions: [
        { name: "not-being-deleted", expression: "!has(object.metadata.deletionTimestamp)" },
        { name: "something-to-do", expression: podUpdates(injecting) },
      ],
    },
  ];
}

/**
 * Pods are updated all the time (labels, finalizers, images), and this rarely concerns placement. It does if the
 * provenance annotation has changed, or the spec of a pod with one; and if a policy may inject into a gated pod.
 */
function podUpdates(injecting: boolean): string {
  const changed = `(object.spec != oldObject.spec || !${carries("object", PROVENANCE)})`;
  const ways = [
    SENT_PROVENANCE,
    `(${carries("oldObject", PROVENANCE)} && ${changed})`,
    carries("object", REAPPLY),
  ];
  return [...ways, ...(injecting ? [isGatedExpression("oldObject")] : [])].join(" || ");
}

/** The condition of the hook while there is no policy. */
export const WITHOUT_POLICY = "has-annotation";

const ANNOTATED = [
  carries("object", PROVENANCE),
  carries("object", REAPPLY),
  `(request.operation == 'UPDATE' && ${carries("oldObject", PROVENANCE)})`,
].join(" || ");

function hasPolicies(view: View): boolean {
  return [clusterPodSchedulingPolicy, podSchedulingPolicy].some((kind) => view.count(kindResource(kind)) > 0);
}

function templateRules(workloads: readonly WorkloadKind[]): Rule[] {
  const groups = new Map<string, { versions: Set<string>; resources: Set<string> }>();
  for (const { group, version, resource, template } of workloads) {
    if (template.length === 0) continue;
    const entry = groups.get(group) ?? { versions: new Set(), resources: new Set() };
    entry.versions.add(version);
    entry.resources.add(resource);
    groups.set(group, entry);
  }
  return [...groups].map(([group, { versions, resources }]) => ({
    groups: [group],
    versions: [...versions],
    resources: [...resources],
    operations: ["CREATE", "UPDATE"] as const,
    scope: "Namespaced" as const,
  }));
}
