import type { Module } from "../../../core/module/module.ts";
import type { Reconciler } from "../../../core/module/reconciler.ts";
import { driftReconciler, isDriftKey } from "../drift/reconcile-drift.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";
import { statusReconciler } from "./reconcile-status.ts";

/** All that the leader does for placement: it looks at workloads, and writes the status of policies. */
export function placementReconciler(module: () => Module): Reconciler {
  const survey = driftReconciler(module);
  const kinds = [clusterPodSchedulingPolicy, podSchedulingPolicy];
  const status = statusReconciler("placement", kinds, survey.workloads);
  return {
    keys: (change, view) => [...status.keys(change, view), ...survey.keys(change, view)],
    plan: (key, context) => (isDriftKey(key) ? survey : status).plan(key, context),
    figures: survey.figures,
  };
}
