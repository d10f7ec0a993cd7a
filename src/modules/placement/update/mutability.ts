import { at, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Field, FieldLimits } from "../criteria/criteria.ts";

/** What an object takes by the rules of the API server. A patch that it would refuse is worse than none: the whole request fails. */
export type Openness =
  | { readonly limits: FieldLimits }
  /** Nothing new at all, and why; what the stored object has may still be given back. */
  | { readonly closed: string };

const OPEN: Openness = { limits: {} };

const fields = (names: readonly Field[], why: string): FieldLimits =>
  Object.fromEntries(names.map((name) => [name, why]));

/** What neither a pod nor a Job takes once it exists, be it gated or suspended. */
const FIXED: readonly Field[] = [
  "nodeName",
  "schedulerName",
  "podAffinity",
  "podAntiAffinity",
  "topologySpreadConstraints",
  "priorityClassName",
  "runtimeClassName",
];

/**
 * A pod at a scheduling gate, on UPDATE. It takes further nodeSelector keys, requirements at the end of the terms that it has, a first
 * required node affinity, preferred node affinity and tolerations.
 */
const GATED_POD: Openness = {
  limits: {
    ...fields(FIXED, "a pod can't get it any more once it exists"),
    schedulingGates: "a pod gets no further gate once it exists",
    appendOnly: true,
  },
};

/** A suspended Job, on UPDATE: node affinity, nodeSelector, tolerations and gates may change, the rest of its template never. */
const SUSPENDED_JOB: Openness = {
  limits: fields(FIXED, "a Job can't get it any more once it exists"),
};

const STARTED_JOB: Openness = { closed: "the template of a Job can only change while the Job is suspended" };

const PLACED_POD: Openness = { closed: "a pod that waits at no scheduling gate can't be placed anew" };

/** On many nodes is what a DaemonSet is for; its controller and a fixed node would also fight. */
const DAEMON_SET: Openness = { limits: { nodeName: "a DaemonSet runs on many nodes" } };

/** What the API server lets be written into this object. `old` is the stored object, on UPDATE only. */
export function opennessOf(workload: WorkloadKind, old: JsonObject | undefined): Openness {
  const { group, kind } = workload;
  if (group === "apps" && kind === "DaemonSet") return DAEMON_SET;
  if (old === undefined) return OPEN;
  if (group === "" && kind === "Pod") return isGated(old["spec"]) && !isBound(old) ? GATED_POD : PLACED_POD;
  if (group === "batch" && kind === "Job") return isSuspended(old) ? SUSPENDED_JOB : STARTED_JOB;
  return OPEN;
}

/** What the stored Job says counts: one UPDATE may resume it and get new terms, but not suspend it and get them. */
function isSuspended(job: JsonObject): boolean {
  const started = at(job, "status", "startTime");
  // After a Job was suspended again its controller still has pods to end; then it resets the time.
  return at(job, "spec", "suspend") === true && (started === undefined || started === null);
}

/** On UPDATE the stored pod's gates count: the UPDATE that takes the last one away may still bring terms. */
function isGated(spec: Json | undefined): boolean {
  return listAt(spec, "schedulingGates").length > 0;
}

export function isBound(pod: JsonObject): boolean {
  return (stringAt(pod, "spec", "nodeName") ?? "") !== "";
}

/**
 * The limits of a pod's spec as it is now, for one policy: a pod with a gate may have no node, whichever of the two came first.
 * A policy that brings both brings the gate.
 */
export function limitsNow(
  limits: FieldLimits,
  spec: Json | undefined,
  { schedulingGates }: { readonly schedulingGates: readonly JsonObject[] },
): FieldLimits {
  const withNode = (stringAt(spec, "nodeName") ?? "") !== "";
  const gated = isGated(spec);
  if (!withNode && !gated && schedulingGates.length === 0) return limits;
  const brings = !withNode && schedulingGates.length > 0 && limits.schedulingGates === undefined;
  const nodeName = limits.nodeName ?? "a pod with a scheduling gate can't have its node yet";
  const gates = limits.schedulingGates ?? "a pod that has its node waits at no gate";
  return {
    ...limits,
    ...(gated || brings ? { nodeName } : {}),
    ...(withNode ? { schedulingGates: gates } : {}),
  };
}
