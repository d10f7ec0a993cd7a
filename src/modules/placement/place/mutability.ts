import { at, type JsonObject } from "../../../core/json.ts";
import { isBound, isGatedSpec } from "../../../core/kubernetes/pod-state.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import { isPod } from "../../../core/kubernetes/workloads.ts";
import { CRITERIA } from "../criteria/criteria.ts";
import { type Limits, type Mutability, NO_LIMITS } from "../criteria/criterion.ts";

/**
 * The fields that an object accepts by the rules of the API server. A patch that it refuses is worse than none: the
 * whole request fails.
 */
export type ObjectMutability =
  | { readonly limits: Limits }
  /** Nothing new at all, with the reason; the stored object's values may still be restored. */
  | { readonly immutable: string };

function limitsOf(state: Exclude<keyof Mutability, "ungatedPod">): Limits {
  const reasons = CRITERIA.flatMap(({ name, mutability }) => {
    const why = mutability[state];
    return why === undefined ? [] : [[name, why] as const];
  });
  return { immutable: Object.fromEntries(reasons) };
}

const MUTABLE: ObjectMutability = { limits: NO_LIMITS };

/**
 * On UPDATE it accepts further keys, requirements at the end of existing terms, a first required node affinity, and
 * tolerations.
 */
const GATED_POD: ObjectMutability = { limits: { ...limitsOf("gatedPod"), appendOnly: true } };

/** On UPDATE some fields may change, the rest of its template never. */
const SUSPENDED_JOB: ObjectMutability = { limits: limitsOf("suspendedJob") };

const STARTED_JOB: ObjectMutability = {
  immutable: "the template of a Job is immutable unless the Job is suspended",
};

const UNGATED_POD: ObjectMutability = {
  immutable: "the placement of a pod without scheduling gates is immutable",
};

/** Its controller and a fixed node would fight. */
const DAEMON_SET: Limits = {
  ...limitsOf("daemonSet"),
  impossible: Object.keys(limitsOf("daemonSet").immutable),
};

/** The fields that the API server allows in a new object. */
export function limitsAtCreation(workload: WorkloadKind): Limits {
  return isDaemonSet(workload) ? DAEMON_SET : NO_LIMITS;
}

/** The fields that the API server allows to change in a stored object. */
export function mutabilityOf(workload: WorkloadKind, old: JsonObject): ObjectMutability {
  if (isDaemonSet(workload)) return { limits: DAEMON_SET };
  if (isPod(workload)) return isGatedSpec(old["spec"]) && !isBound(old) ? GATED_POD : UNGATED_POD;
  if (workload.group === "batch" && workload.kind === "Job")
    return isSuspended(old) ? SUSPENDED_JOB : STARTED_JOB;
  return MUTABLE;
}

function isDaemonSet({ group, kind }: WorkloadKind): boolean {
  return group === "apps" && kind === "DaemonSet";
}

/** The stored Job counts: one UPDATE may resume it and bring new terms, but not suspend it and bring them. */
function isSuspended(job: JsonObject): boolean {
  const started = at(job, "status", "startTime");
  // After a Job was suspended again its controller still has pods to end; then it resets the time.
  return at(job, "spec", "suspend") === true && (started === undefined || started === null);
}
