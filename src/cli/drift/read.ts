import {
  driftOf,
  driftScanCall,
  type ObjectDrift,
  policyExists,
  scanPage,
} from "../../core/drift/drift-scan.ts";
import type { Injection } from "../../core/drift/injections.ts";
import { evaluate } from "../../core/evaluate/evaluate.ts";
import { failureOf } from "../../core/evaluate/need.ts";
import { resourceName } from "../../core/evaluate/request.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { WorkloadKind } from "../../core/kubernetes/workloads.ts";
import type { Module } from "../../core/module/module.ts";
import type { Source } from "../../core/view/source.ts";
import { reviewDeadline } from "../review/deadline.ts";

/** As many as are read at once; a terminal shows that it goes on. */
const PAGE = 200;

/** One workload and what it carries, as JSON has it. */
export interface WorkloadStatus {
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly namespace: string;
    readonly name: string;
  };
  readonly carries: readonly (Injection & { readonly gone?: true })[];
  /** Whether to renew it would change the pod or its template. */
  readonly rolls: boolean;
  readonly refused?: string;
}

export interface Survey {
  readonly workloads: readonly WorkloadStatus[];
  /** What could not be read, with the reason. */
  readonly unread: readonly string[];
}

export interface SurveyOptions {
  /** All namespaces where absent. */
  readonly namespace: string | undefined;
  /** Told of how many kinds of how many have been read. */
  readonly progress: (done: number, total: number) => void;
}

/** All workloads of a source that carry something of the module's policies, or lack it. */
export async function readSurvey(source: Source, module: Module, options: SurveyOptions): Promise<Survey> {
  const workloads: WorkloadStatus[] = [];
  const unread: string[] = [];
  const { all } = source.assembly.installation.workloads;
  for (const [i, workload] of all.entries()) {
    options.progress(i, all.length);
    for await (const page of pagesOf(source, module, workload, options.namespace)) {
      if (typeof page === "string") {
        unread.push(page);
        continue;
      }
      for (const object of page) {
        const found = await statusOf(source, module, workload, object);
        if (found !== undefined) workloads.push(found);
      }
    }
  }
  return { workloads, unread };
}

/** Pages of stored objects; a text says why there are no more. */
async function* pagesOf(
  source: Source,
  module: Module,
  workload: WorkloadKind,
  namespace: string | undefined,
): AsyncIterable<JsonObject[] | string> {
  const where = namespace === undefined ? {} : { namespace };
  for (let token: string | undefined; ; ) {
    const next = token === undefined ? {} : { continue: token };
    const page = scanPage(module, workload, PAGE, { ...where, ...next, all: true });
    const [fact] = await source.fetch([page], reviewDeadline());
    if (fact === undefined || !("found" in fact)) {
      const failure = fact === undefined ? undefined : failureOf(fact);
      if (fact !== undefined && failure !== undefined)
        yield "failed" in fact ? failure : `${resourceName(workload)}: ${failure}`;
      return;
    }
    yield Array.isArray(fact.found) ? fact.found.filter(isObject) : [];
    token = fact.next;
    if (token === undefined) {
      if (!fact.complete) yield `${resourceName(workload)}: not all of them could be read in time`;
      return;
    }
  }
}

async function statusOf(
  source: Source,
  module: Module,
  workload: WorkloadKind,
  object: JsonObject,
): Promise<WorkloadStatus | undefined> {
  const found = await surveyLive(source, module, workload, object);
  if (found === undefined || found.carried.length === 0) return undefined;
  const { group, version, kind } = workload;
  const gone = (policy: string) => !policyExists(module, source.assembly, policy);
  return {
    object: {
      apiVersion: group === "" ? version : `${group}/${version}`,
      kind,
      namespace: namespaceOf(object),
      name: nameOf(object),
    },
    carries: found.carried.map((one) =>
      one.state === "orphaned" && gone(one.policy) ? { ...one, gone: true } : one,
    ),
    rolls: found.rolls,
    ...(found.refused === undefined ? {} : { refused: found.refused }),
  };
}

async function surveyLive(
  source: Source,
  module: Module,
  workload: WorkloadKind,
  object: JsonObject,
): Promise<ObjectDrift | undefined> {
  const call = driftScanCall(module, object, workload, source.assembly, Date.now());
  if (call === undefined) return undefined;
  const evaluation = await evaluate(call, {
    fetch: (needs) => source.fetch(needs, reviewDeadline()),
    // A survey changes nothing.
    commit: async () => "done",
    expired: () => false,
  });
  return driftOf(module, object, workload, evaluation);
}
