import { type NeedMore, need } from "../../../core/decision/decision.ts";
import type { Need } from "../../../core/decision/need.ts";
import { resourceName } from "../../../core/decision/request.ts";
import { type ObjectDrift, requestReapply, scanObject } from "../../../core/drift/drift-scan.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Module } from "../../../core/module/module.ts";
import type { PlannedWrite, ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import type { ScannedObject } from "./drift-walk.ts";

/** Each may roll out a workload. Two every ten seconds can be watched, and stopped. */
const PER_STEP = 2;
const EVERY_S = 10;

/** The next scan finds the rest. */
const MOST_WAITING = 1_000;

interface Waiting {
  readonly workload: WorkloadKind;
  readonly of: { readonly resource: string; readonly namespace: string; readonly name: string };
}

/** Workloads with drift that wait for repair, which is a few at a time. */
export class DriftRepair {
  readonly #waiting = new Map<string, Waiting>();
  /** When the next ones may be repaired, of the monotonic clock. */
  #nextAt = Number.NEGATIVE_INFINITY;

  /** Adds repairable ones; true if any waits now. */
  add(scanned: readonly ScannedObject[]): boolean {
    for (const { workload, object, drift } of scanned) {
      if (!isRepairable(drift) || this.#waiting.size >= MOST_WAITING) continue;
      const of = { resource: resourceName(workload), namespace: namespaceOf(object), name: nameOf(object) };
      this.#waiting.set(`${of.resource} ${of.namespace}/${of.name}`, { workload, of });
    }
    return this.#waiting.size > 0;
  }

  /** Repairs those that wait longest. They are compared again, because they may have changed in the meantime. */
  reconcile(
    module: Module,
    { assembly, facts, now, elapsed = now }: Omit<ReconcileContext, "failure">,
  ): ReconcileResult<never> | NeedMore {
    if (assembly === undefined || this.#waiting.size === 0) return { writes: [] };
    const wait = this.#nextAt - elapsed;
    // Each page of a scan may ask again.
    if (wait > 0) return { writes: [], requeueAfter: wait / 1_000 };
    const chosen = [...this.#waiting].slice(0, PER_STEP);
    const gets = chosen.map(([, { of }]): Need => ({ get: of, live: true }));
    const missing = gets.filter((one) => facts.of(one) === undefined);
    if (missing.length > 0) return need(...missing);
    const writes: PlannedWrite[] = [];
    const needs: Need[] = [];
    for (const [i, [, { workload, of }]] of chosen.entries()) {
      const get = gets[i];
      const fact = get === undefined ? undefined : facts.of(get);
      if (fact === undefined || !("found" in fact) || !isObject(fact.found)) continue;
      const object: JsonObject = fact.found;
      const drift = scanObject(module, object, workload, assembly, { facts, now });
      if ("needs" in drift) needs.push(...drift.needs);
      else if (isRepairable(drift) && module.driftScan !== undefined) {
        const resourceVersion = stringAt(object, "metadata", "resourceVersion") ?? "";
        writes.push({
          patch: requestReapply(object, module.driftScan.annotation, "usher"),
          of,
          resourceVersion,
        });
      }
    }
    if (needs.length > 0) return need(...needs);
    // Also failing ones: the next scan finds them again, and none delays the others.
    for (const [key] of chosen) this.#waiting.delete(key);
    this.#nextAt = elapsed + EVERY_S * 1_000;
    return { writes, ...(this.#waiting.size > 0 ? { requeueAfter: EVERY_S } : {}) };
  }
}

/** Orphaned values stay: only a user may request their removal. */
function isRepairable({ carried, rolls, refused }: ObjectDrift): boolean {
  return (
    rolls && refused === undefined && carried.some(({ state }) => state === "missing" || state === "stale")
  );
}
