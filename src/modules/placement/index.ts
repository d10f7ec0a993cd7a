import { defineModule, type Module, NAMESPACES, PREVIEW_ACCESS } from "../../core/module/module.ts";
import { defineReconciler } from "../../core/module/reconciler.ts";
import { PolicyIndex } from "../../core/policy/policy-index.ts";
import { CODES } from "./codes.ts";
import { compile } from "./compile.ts";
import { NODE_READ } from "./criteria/selected-nodes.ts";
import { dashboard } from "./dashboard.ts";
import { declaration } from "./declaration.ts";
import { DRIFT_ACCESS, driftScan } from "./drift/scanned-workloads.ts";
import { enforce } from "./enforce/enforcement.ts";
import { allHooks } from "./hooks/hooks.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "./kinds.ts";
import { METRICS } from "./metrics.ts";
import { MUTATIONS, SETTING_MUTATIONS } from "./mutations.ts";
import { contradictions } from "./place/contradictions.ts";
import { REFERENCE_ACCESS } from "./place/merge-policies.ts";
import { place } from "./place/place.ts";
import type { PlacementPolicy } from "./policy/policy.ts";
import { placementReconciler } from "./reconciler.ts";
import { settings } from "./settings.ts";
import { STANDBY_ACCESS, standby } from "./standby.ts";
import { WEBHOOKS } from "./status/effect.ts";

/** Scheduling criteria, written into pods and pod templates by policy. */
export const placement: Module = defineModule<PlacementPolicy>({
  name: declaration.name,
  summary: declaration.summary,
  dashboard,
  kinds: [clusterPodSchedulingPolicy, podSchedulingPolicy],
  reads: [
    {
      ...NAMESPACES,
      keep: [
        ["metadata", "labels"],
        ["metadata", "annotations"],
      ],
      why: "match policies by the labels of a namespace, and take values from it",
    },
    NODE_READ,
    WEBHOOKS,
  ],
  access: [...REFERENCE_ACCESS, ...DRIFT_ACCESS, PREVIEW_ACCESS, STANDBY_ACCESS],
  managed: standby,
  settings,
  lint: contradictions,
  compile,
  driftScan,
  hooks: allHooks,
  assemble: (policies) => {
    const all = new PolicyIndex(policies);
    const injecting = new PolicyIndex(policies.filter(injects));
    return {
      mutate: (context) => place(context, { all, injecting }),
      validate: (context) => enforce(context, { all, injecting }),
      update: (removed, added) => {
        for (const policy of removed) for (const index of [all, injecting]) index.remove(policy);
        for (const policy of added)
          for (const index of injects(policy) ? [all, injecting] : [all]) index.add(policy);
      },
    };
  },
  predecessors: [
    {
      name: "gardener-extension-kupid",
      meaning:
        "kupid is still running: kupid and usher both add scheduling criteria to the same pods, kupid by its own order of policies. Stop it once usher is ready: scale its Deployment to 0 and delete its webhook configurations",
    },
  ],
  reconciler: defineReconciler(placementReconciler(() => placement)),
  metrics: METRICS,
  mutations: MUTATIONS,
  settingMutations: SETTING_MUTATIONS,
  codes: CODES,
});

function injects({ onUpdate }: PlacementPolicy): boolean {
  return onUpdate === "Inject";
}
