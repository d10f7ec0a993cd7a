import type { Facts, Need } from "../decision/need.ts";
import { type AdmissionRequest, resourceName, supposedRequest } from "../decision/request.ts";
import { type Evaluation, type EvaluationRequest, evaluateHooks } from "../evaluate/evaluate-hooks.ts";
import type { Installation } from "../installation/installation.ts";
import { at, copyOf, equal, isObject, type Json, type JsonObject, stringAt } from "../json.ts";
import { specPath, type WorkloadKind } from "../kubernetes/workloads.ts";
import type { Assembly } from "../module/assembly.ts";
import type { Module } from "../module/module.ts";
import { pointer } from "../path.ts";
import { kindResource } from "../policy/kind.ts";
import { compareInjections, type Injection, unmetIn } from "./compare-injections.ts";

/** How a stored object compares with the policies of a module. */
export interface ObjectDrift {
  readonly carried: readonly Injection[];
  /** Whether reapplying would change the pod or its template, and so roll it out. */
  readonly rolls: boolean;
  /** Why it can't be reapplied. */
  readonly refused?: string;
}

/** The rule whose skipped findings explain why a reapply request was not fulfilled. */
const REAPPLY_RULE = "reapply";

const UNMET = "a policy enforces what the object does not meet; change or recreate it";

const IMMUTABLE = "the object is immutable; recreate it to add what is missing";

/** For objects that the module never touches. */
const NO_DRIFT: ObjectDrift = { carried: [], rolls: false };

/**
 * A request to reapply a stored object, evaluated as by the webhook, as a dry run; so a scan can't disagree with a
 * reapply. `undefined` if the module does not affect the object.
 */
function driftScanCall(
  { name, driftScan }: Module,
  object: JsonObject,
  workload: WorkloadKind,
  assembly: Assembly,
  now: number,
): EvaluationRequest | undefined {
  const { installation, hooks } = assembly;
  if (driftScan === undefined) return undefined;
  const { workloads } = installation;
  const untouched = driftScan.leftAlone(object, workload, workloads) !== undefined;
  const asNew = untouched ? driftScan.asNew?.(object, workload, workloads) : undefined;
  if (untouched && asNew === undefined) return undefined;
  return {
    assembly,
    phase: "mutate",
    hooks: hooks.filter(({ module }) => module === name),
    now,
    request:
      asNew === undefined
        ? scanRequest(workload, withAnnotation(object, driftScan.annotation), object)
        : scanRequest(workload, asNew),
  };
}

function scanRequest(workload: WorkloadKind, object: JsonObject, oldObject?: JsonObject): AdmissionRequest {
  // A draft edits in place; the stored object is compared with it.
  return supposedRequest(workload, copyOf(object) as JsonObject, {
    uid: "drift-scan",
    operation: oldObject === undefined ? "CREATE" : "UPDATE",
    userInfo: { username: "usher", groups: [] },
    oldObject,
  });
}

/** The drift of one object, or the needs to determine it. */
export function scanObject(
  module: Module,
  object: JsonObject,
  workload: WorkloadKind,
  assembly: Assembly,
  { facts, now }: { readonly facts: Facts; readonly now: number },
): ObjectDrift | { readonly needs: readonly Need[] } {
  const call = driftScanCall(module, object, workload, assembly, now);
  const result = call === undefined ? undefined : evaluateHooks(call, facts);
  const judged = judgement(module, object, workload, { assembly, now });
  const unmet = judged === undefined ? undefined : evaluateHooks(judged, facts);
  const needs = [result, unmet].flatMap((one) => (one !== undefined && "needs" in one ? one.needs : []));
  if (needs.length > 0) return { needs };
  const drift =
    result === undefined || "needs" in result ? NO_DRIFT : driftOf(module, object, workload, result);
  return unmet === undefined || "needs" in unmet ? drift : withUnmet(drift, object, workload, unmet);
}

/** The stored object, evaluated by the module's validating hooks as if it were created now. */
function judgement(
  { name, driftScan }: Module,
  stored: JsonObject,
  workload: WorkloadKind,
  { assembly, now }: Pick<EvaluationRequest, "assembly" | "now">,
): EvaluationRequest | undefined {
  const hooks = assembly.hooks.filter(
    ({ module, phase, rules }) => module === name && phase === "validate" && rules.length > 0,
  );
  if (hooks.length === 0) return undefined;
  const object = driftScan?.judged?.(stored, workload);
  if (object === undefined) return undefined;
  return { assembly, phase: "validate", hooks, now, request: scanRequest(workload, object) };
}

/** Unmet requirements count as missing, even if reapplying would not add them. */
function withUnmet(
  drift: ObjectDrift,
  stored: JsonObject,
  workload: WorkloadKind,
  { findings }: Evaluation,
): ObjectDrift {
  const missing = unmetIn(findings, stored, specPath(workload)).filter(
    ({ policy }) => !drift.carried.some((one) => one.policy === policy && one.state !== "current"),
  );
  if (missing.length === 0) return drift;
  const unmet = new Set(missing.map(({ policy }) => policy));
  const carried = [...drift.carried.filter(({ policy }) => !unmet.has(policy)), ...missing];
  return drift.rolls ? { ...drift, carried } : { refused: UNMET, ...drift, carried };
}

function driftOf(
  module: Module,
  stored: JsonObject,
  workload: WorkloadKind,
  { request, asked, denials, draft, findings }: Evaluation,
): ObjectDrift {
  // No hook is evaluated in an exempt namespace.
  if (asked.length === 0) return NO_DRIFT;
  const spec = specPath(workload);
  const skipped = findings.filter(({ rule, outcome }) => rule === REAPPLY_RULE && outcome === "skipped");
  const refusals = [...denials, ...skipped].map(({ message }) => message);
  if (refusals.length > 0) {
    const carried = compareInjections(module.name, stored, stored, spec);
    return { carried, rolls: false, refused: refusals.join("\n") };
  }
  const carried = compareInjections(module.name, stored, draft.object, spec);
  if (request.operation === "CREATE") return { carried, rolls: false, refused: IMMUTABLE };
  const rolls = !equal(at(stored, ...spec), at(draft.object, ...spec));
  return { carried: rolls ? carried : carried.map(satisfied), rolls };
}

/** An unchanged object is current, even if its provenance names another policy. */
function satisfied(injection: Injection): Injection {
  return injection.state === "orphaned" ? injection : { ...injection, state: "current" };
}

/** The kinds of workloads that are scanned for drift. */
export function scannedKinds({ driftScan }: Module, installation: Installation): readonly WorkloadKind[] {
  return driftScan?.kinds?.(installation) ?? installation.workloads.all;
}

/** A page of the stored objects of a kind, with managed fields. With `all`, immutable objects as well. */
export function scanPage(
  { driftScan }: Module,
  workload: WorkloadKind,
  limit: number,
  from: { readonly namespace?: string; readonly continue?: string; readonly all?: boolean } = {},
): Need {
  const { all, ...where } = from;
  const fieldSelector = all === true ? undefined : driftScan?.fieldSelector?.(workload);
  return {
    list: {
      resource: resourceName(workload),
      managers: true,
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...where,
    },
    limit,
    share: 1,
  };
}

/** Whether a policy named by provenance still exists: `ClusterPodSchedulingPolicy/etcd-pool`. */
export function policyExists({ kinds }: Module, { view }: Assembly, key: string): boolean {
  const [kindName = "", first = "", second] = key.split("/");
  const kind = kinds.find((one) => one.kind === kindName);
  if (kind === undefined) return false;
  const resource = kindResource(kind);
  return view.get(resource, second === undefined ? "" : first, second ?? first) !== undefined;
}

/** Operations that request a reapply; `by` names the requester. */
export function requestReapply(object: JsonObject, annotation: string, by: string) {
  const { metadata } = object;
  const annotations = isObject(metadata) ? metadata["annotations"] : undefined;
  return isObject(annotations)
    ? [{ op: "add" as const, path: annotationPointer(annotation), value: by }]
    : [{ op: "add" as const, path: "/metadata/annotations", value: { [annotation]: by } }];
}

/** Operations that remove a request to reapply. */
export function withdrawReapply(annotation: string) {
  return [{ op: "remove" as const, path: annotationPointer(annotation) }];
}

function annotationPointer(annotation: string): string {
  return pointer(["metadata", "annotations", annotation]);
}

/** Whether an object still has a request to reapply: a webhook that saw it would have removed it. */
export function reapplyRequested(object: Json | undefined, annotation: string): boolean {
  return stringAt(object, "metadata", "annotations", annotation) !== undefined;
}

function withAnnotation(object: JsonObject, annotation: string): JsonObject {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const annotations = isObject(metadata["annotations"]) ? metadata["annotations"] : {};
  return {
    ...object,
    metadata: { ...metadata, annotations: { ...annotations, [annotation]: "drift-scan" } },
  };
}
