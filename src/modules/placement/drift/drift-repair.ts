import { z } from "zod";
import { type ObjectDrift, requestReapply, scanObject } from "../../../core/drift/drift-scan.ts";
import { need } from "../../../core/evaluate/decision.ts";
import type { Need } from "../../../core/evaluate/need.ts";
import { resourceName } from "../../../core/evaluate/request.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { nameOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Installation } from "../../../core/module/installation.ts";
import type { Module } from "../../../core/module/module.ts";
import type { PlannedWrite, ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import type { Met } from "./drift-walk.ts";

/** Each may roll out a workload. Two every ten seconds is what somebody can watch, and stop. */
const AT_ONCE = 2;
const EVERY_S = 10;

/** What is behind these is found by the next walk. */
const MOST_WAITING = 1_000;

/** What an installation may tell placement. */
export const settings = z.strictObject({
  mend: z
    .boolean()
    .optional()
    .describe(
      "Let usher itself renew workloads that lack what a policy wants, a few at a time. Default false.",
    ),
});

/** Whether usher may write into workloads by itself. */
export function repairsDrift({ settings: told }: Installation): boolean {
  return told?.["placement"]?.["mend"] === true;
}

interface Waiting {
  readonly workload: WorkloadKind;
  readonly of: { readonly resource: string; readonly namespace: string; readonly name: string };
}

/** Workloads that lack what a policy wants, to be written anew, a few at a time; where the installation says that usher may. */
export class DriftRepair {
  readonly #waiting = new Map<string, Waiting>();

  /** Takes those in that need it; true where any waits now. */
  take(met: readonly Met[]): boolean {
    for (const { workload, object, surveyed } of met) {
      if (!lacks(surveyed) || this.#waiting.size >= MOST_WAITING) continue;
      const of = { resource: resourceName(workload), namespace: namespaceOf(object), name: nameOf(object) };
      this.#waiting.set(`${of.resource} ${of.namespace}/${of.name}`, { workload, of });
    }
    return this.#waiting.size > 0;
  }

  /** Those that wait longest. They are looked at once more, since somebody may have mended them meanwhile. */
  plan(
    module: Module,
    { assembly, facts, now }: ReconcileContext,
  ): ReconcileResult | ReturnType<typeof need> {
    if (assembly === undefined || this.#waiting.size === 0) return { writes: [] };
    const chosen = [...this.#waiting].slice(0, AT_ONCE);
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
      const surveyed = scanObject(module, object, workload, assembly, { facts, now });
      if ("needs" in surveyed) needs.push(...surveyed.needs);
      else if (lacks(surveyed) && module.driftScan !== undefined) {
        const resourceVersion = stringAt(object, "metadata", "resourceVersion") ?? "";
        writes.push({
          patch: requestReapply(object, module.driftScan.annotation, "usher"),
          of,
          resourceVersion,
        });
      }
    }
    if (needs.length > 0) return need(...needs);
    // Also those that fail now: the next walk finds them again, and nobody waits for one that can't be mended.
    for (const [key] of chosen) this.#waiting.delete(key);
    return { writes, ...(this.#waiting.size > 0 ? { again: EVERY_S } : {}) };
  }
}

/** Orphans stay: taking away is asked for by people. */
function lacks({ carried, rolls, refused }: ObjectDrift): boolean {
  return (
    rolls && refused === undefined && carried.some(({ state }) => state === "missing" || state === "stale")
  );
}
