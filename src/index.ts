/**
 * Usher as a library: the core, its modules, and the types of both. Everything here is pure: no I/O, no clock.
 *
 * @example
 * ```ts
 * import { Assembly, responseOf, DEFAULT_INSTALLATION, evaluate, Gates, modules } from "@usher-dev/usher";
 *
 * const assembly = new Assembly(modules, DEFAULT_INSTALLATION, new Gates([]));
 * assembly.apply([{ resource: "namespaces", namespace: "", name: "shop", object: namespace }]);
 * const evaluation = await evaluate({ assembly, phase: "mutate", hooks: assembly.hooks, request, now: Date.now() }, host);
 * const { allowed, patch, warnings } = responseOf(evaluation);
 * ```
 */

export type { Count } from "./core/decision/decision.ts";
export {
  allow,
  type Commit,
  type Decision,
  type Denial,
  deny,
  type NeedMore,
  need,
  type Result,
} from "./core/decision/decision.ts";
export { Draft, type Edit } from "./core/decision/draft.ts";
export type {
  EventToWrite,
  Finding,
  FindingEvent,
  FindingOutcome,
  ModuleFinding,
  ObjectReference,
} from "./core/decision/finding.ts";
export { type Fact, Facts, failureOf, type Need } from "./core/decision/need.ts";
export { type PatchOperation, patchOf } from "./core/decision/patch.ts";
export type { AdmissionRequest, Operation, UserInfo } from "./core/decision/request.ts";
export type { DenialStatus, StatusCause, StatusDetails } from "./core/decision/status.ts";
export type { Tally } from "./core/decision/tally.ts";
export { type Effects, effectsOf, METRICS } from "./core/evaluate/effects.ts";
export { type CommitResult, evaluate, type Host } from "./core/evaluate/evaluate.ts";
export type { Evaluation, EvaluationRequest, ModuleTrace } from "./core/evaluate/evaluate-hooks.ts";
export { type AdmissionResponse, responseOf, reviewOf } from "./core/evaluate/response.ts";
export type { Deadline, Source } from "./core/evaluate/source.ts";
export { type Gate, Gates, parseGates } from "./core/installation/gates.ts";
export { DEFAULT_INSTALLATION, type Installation } from "./core/installation/installation.ts";
export type { Json, JsonObject } from "./core/json.ts";
export { defaulted } from "./core/kubernetes/defaults/defaults.ts";
export { atLeast, type KubernetesVersion, type ServerVersion } from "./core/kubernetes/versions.ts";
export {
  BUILT_IN_WORKLOADS,
  type WorkloadKind,
  type WorkloadTable,
  workloadTable,
} from "./core/kubernetes/workloads.ts";
export { Assembly, type StandingPolicy } from "./core/module/assembly.ts";
export { codesOf } from "./core/module/codes.ts";
export { type Hook, hookWants, type NamespaceScope, type Phase, type Rule } from "./core/module/hook.ts";
export type { Figure, Metric, MetricLabel } from "./core/module/metric.ts";
export {
  type Code,
  type Context,
  defineModule,
  type Evaluator,
  type Module,
  type Read,
  type TraceEntry,
} from "./core/module/module.ts";
export { policyCheck } from "./core/module/policy-check.ts";
export {
  defineReconciler,
  type KeysContext,
  type PlannedWrite,
  type ReconcileContext,
  type ReconcileKey,
  type ReconcileResult,
  type Reconciler,
} from "./core/module/reconciler.ts";
export type { Path } from "./core/path.ts";
export { checkObject } from "./core/policy/check.ts";
export type { CelRule, Column, Kind, KindVersion, Prepared } from "./core/policy/kind.ts";
export { type PolicyRef, policyKey, policyName } from "./core/policy/policy-ref.ts";
export type { Problem } from "./core/policy/problem.ts";
export { PROVENANCE, provenanceOf } from "./core/provenance/annotation.ts";
export { Store } from "./core/view/store.ts";
export type { Change, Index, View } from "./core/view/view.ts";
export { modules } from "./modules/all.ts";
