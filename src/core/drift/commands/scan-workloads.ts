import { resourceName } from "../../decision/request.ts";
import type { JsonObject } from "../../json.ts";
import { nameOf, namespaceOf } from "../../kubernetes/object.ts";
import type { WorkloadKind } from "../../kubernetes/workloads.ts";
import type { CommandCall, CommandSteps } from "../../module/command.ts";
import { readPages, withFacts } from "../../module/command-needs.ts";
import type { Injection } from "../compare-injections.ts";
import { policyExists, scannedKinds, scanObject, scanPage } from "../drift-scan.ts";

/** Objects read at once: bounds memory, and keeps progress visible on a terminal. */
const PAGE = 200;

/** One workload and its injections, as JSON has it. */
export interface WorkloadStatus {
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
  };
  readonly carries: readonly (Injection & { readonly gone?: true })[];
  /** Whether reapplying would change the pod or its template. */
  readonly rolls: boolean;
  readonly refused?: string;
}

export interface WorkloadScan {
  readonly workloads: readonly WorkloadStatus[];
  /** Objects that could not be read, with the reason. */
  readonly unread: readonly string[];
}

/** Every workload with an injection of the module's policies, or without one that a policy requires. */
export function* scanWorkloads(call: CommandCall): CommandSteps<WorkloadScan> {
  const workloads: WorkloadStatus[] = [];
  const unread: string[] = [];
  const all = scannedKinds(call.module, call.assembly.installation);
  const where = call.namespace === undefined ? {} : { namespace: call.namespace };
  for (const [done, workload] of all.entries()) {
    const failure = yield* readPages({
      what: resourceName(workload),
      page: (token) => {
        const from = token === undefined ? {} : { continue: token };
        return scanPage(call.module, workload, PAGE, { ...where, ...from, all: true });
      },
      *take(objects) {
        for (const object of objects) {
          const found = yield* statusOf(call, workload, object);
          if (found !== undefined) workloads.push(found);
        }
      },
      progress: { doing: "scanning", things: "workload kinds", done, total: all.length },
    });
    if (failure !== undefined) unread.push(failure);
  }
  return { workloads, unread };
}

function* statusOf(
  { module, assembly, now }: CommandCall,
  workload: WorkloadKind,
  object: JsonObject,
): CommandSteps<WorkloadStatus | undefined> {
  const drift = yield* withFacts((facts) => scanObject(module, object, workload, assembly, { facts, now }));
  if (drift.carried.length === 0) return undefined;
  const { group, version, kind } = workload;
  const gone = (policy: string) => !policyExists(module, assembly, policy);
  return {
    object: {
      apiVersion: group === "" ? version : `${group}/${version}`,
      kind,
      namespace: namespaceOf(object),
      name: nameOf(object),
    },
    carries: drift.carried.map((one) =>
      one.state === "orphaned" && gone(one.policy) ? { ...one, gone: true } : one,
    ),
    rolls: drift.rolls,
    ...(drift.refused === undefined ? {} : { refused: drift.refused }),
  };
}
