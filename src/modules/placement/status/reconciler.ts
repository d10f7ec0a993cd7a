import type { Module } from "../../../core/module/module.ts";
import type { Planner } from "../../../core/module/reconciler.ts";
import { isSurveyKey, surveyPlanner } from "../drift/reconcile-drift.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";
import { statusPlanner } from "./reconcile-status.ts";

/** All that the leader does for placement: it looks at workloads, and writes the status of policies. */
export function placementPlanner(module: () => Module): Planner {
  const survey = surveyPlanner(module);
  const kinds = [clusterPodSchedulingPolicy, podSchedulingPolicy];
  const status = statusPlanner("placement", kinds, survey.workloads);
  return {
    keys: (change, view) => [...status.keys(change, view), ...survey.keys(change, view)],
    plan: (key, context) => (isSurveyKey(key) ? survey : status).plan(key, context),
    figures: survey.figures,
  };
}
