/**
 * Usher as a library: the heart, and what is needed to feed it. Everything here is pure: no I/O, no clock.
 *
 * @example
 * ```ts
 * import { Assembly, answerOf, DEFAULT_INSTALLATION, evaluate, Gates, modules } from "@usher-dev/usher";
 *
 * const assembly = new Assembly(modules, DEFAULT_INSTALLATION, new Gates([]));
 * assembly.apply([{ resource: "namespaces", namespace: "", name: "shop", object: namespace }]);
 * const evaluation = await evaluate({ assembly, phase: "mutate", hooks: assembly.hooks, request, now: Date.now() }, outside);
 * const { allowed, patch, warnings } = answerOf(evaluation);
 * ```
 */
export { type Answer, answerOf, reviewOf, type StatusCause } from "./core/answer.ts";
export { Assembly, type StandingPolicy } from "./core/assembly.ts";
export { checkObject } from "./core/check.ts";
export { codesOf } from "./core/codes.ts";
export {
  allow,
  type Commit,
  type Decision,
  type Denial,
  deny,
  type NeedMore,
  need,
  type Result,
} from "./core/decision.ts";
export { Draft, type Edit } from "./core/draft.ts";
export {
  type Count,
  type Effects,
  type EventToWrite,
  effectsOf,
  METRICS,
  type Tally,
} from "./core/effects.ts";
export type { Call, Evaluation, ModuleTrace } from "./core/engine.ts";
export { type CommitResult, evaluate, type Outside } from "./core/evaluate.ts";
export {
  type Finding,
  type FindingOutcome,
  type ModuleFinding,
  type PolicyRef,
  policyKey,
  policyName,
} from "./core/finding.ts";
export { type Gate, Gates, parseGates } from "./core/gates.ts";
export { type Hook, hookWants, type NamespaceScope, type Phase, type Rule } from "./core/hook.ts";
export { DEFAULT_INSTALLATION, type Installation } from "./core/installation.ts";
export type { Json, JsonObject } from "./core/json.ts";
export type { CelRule, Column, Kind, KindVersion, Prepared } from "./core/kind.ts";
export { defaulted } from "./core/kubernetes/defaults.ts";
export {
  BUILT_IN_WORKLOADS,
  type WorkloadKind,
  type WorkloadTable,
  workloadTable,
} from "./core/kubernetes/workloads.ts";
export {
  type Code,
  type Context,
  defineModule,
  type Evaluator,
  type Module,
  type Read,
  type TraceEntry,
} from "./core/module.ts";
export { type Fact, Facts, type Need } from "./core/need.ts";
export { PROVENANCE, provenanceOf } from "./core/origin.ts";
export { type PatchOperation, patchOf } from "./core/patch.ts";
export type { Path } from "./core/path.ts";
export type { Plan, PlannedWrite, Planner } from "./core/plan.ts";
export { policyCheck } from "./core/policy-check.ts";
export type { Problem } from "./core/problem.ts";
export type { AdmissionRequest, Operation, UserInfo } from "./core/request.ts";
export type { Deadline, Source } from "./core/source.ts";
export { Store } from "./core/store.ts";
export type { Change, Index, View } from "./core/view.ts";
export { modules } from "./modules/index.ts";
