import { z } from "zod";
import type { Json } from "../../json.ts";
import type { CommandCode, ReportItem } from "../../module/command.ts";
import { DRIFT_STATES, type InjectionState } from "../compare-injections.ts";
import type { StatusArgs } from "./commands.ts";
import { ofPolicy } from "./policy-argument.ts";
import { scanWorkloads, type WorkloadStatus } from "./scan-workloads.ts";
import { countsText, fieldCells, STATUS_COLUMNS, statusRows } from "./status-table.ts";

const json = z.json();
const shape = z.strictObject({
  workloads: z.array(
    z.strictObject({
      object: z.strictObject({
        apiVersion: z.string(),
        kind: z.string(),
        namespace: z.string(),
        name: z.string(),
      }),
      carries: z.array(
        z.strictObject({
          policy: z.string(),
          state: z.enum(DRIFT_STATES),
          generation: z.int().optional(),
          parts: z.array(z.strictObject({ field: z.string(), has: json.optional(), wants: json.optional() })),
          gone: z.literal(true).optional(),
        }),
      ),
      rolls: z.boolean().describe("Whether reapplying would change the pod or its template."),
      refused: z.string().optional(),
    }),
  ),
  summary: z.strictObject(
    Object.fromEntries(DRIFT_STATES.map((state) => [state, z.int()])) as Record<InjectionState, z.ZodInt>,
  ),
  unread: z.array(z.string()).describe("What could not be read."),
});

/** Shows how stored workloads compare with current policies. */
export const statusCode: CommandCode<StatusArgs> = {
  shape,
  *run(call) {
    const { policy } = call.args;
    const { workloads: scanned, unread } = yield* scanWorkloads(call);
    const all = policy === undefined ? scanned : ofPolicy(policy, scanned, call);
    if ("wrong" in all) return all;
    const workloads = call.changedOnly ? all.filter(hasDrift) : all;
    const summary = countsOf(all);
    const drifted = summary.stale + summary.orphaned + summary.missing > 0;
    const chosen = policy === undefined ? "--all" : `--policy ${policy}`;
    const where = call.namespace === undefined ? "-A" : `-n ${call.namespace}`;
    const next = `Run "${call.calledAs} reapply ${chosen} ${where} --dry-run" to preview the repair.`;
    return {
      data: { workloads, summary, unread } as unknown as Json,
      table: { columns: STATUS_COLUMNS, rows: statusRows(workloads) },
      summary: countsText(all.length, summary),
      items: workloads.map(itemOf),
      notes: drifted && call.live ? [next] : [],
      errors: unread.map((reason) => `not scanned: ${reason}`),
      exit: unread.length > 0 ? "failed" : drifted ? "found" : "fine",
    };
  },
};

function hasDrift({ carries }: WorkloadStatus): boolean {
  return carries.some(({ state }) => state !== "current");
}

/** A workload with its differences. */
function itemOf(status: WorkloadStatus): ReportItem {
  const drifted = status.carries.filter(({ state }) => state !== "current");
  return {
    object: status.object,
    verdict: drifted[0]?.state ?? "current",
    findings: drifted.flatMap((injection) =>
      fieldCells(injection).map((text) => ({
        level: "error",
        code: "USHER-P40",
        message: `${injection.state}: ${text}`,
        by: injection.policy,
      })),
    ),
  };
}

function countsOf(workloads: readonly WorkloadStatus[]): Record<InjectionState, number> {
  const states = workloads.flatMap(({ carries }) => carries.map(({ state }) => state));
  const count = (wanted: InjectionState) => states.filter((state) => state === wanted).length;
  return Object.fromEntries(DRIFT_STATES.map((state) => [state, count(state)])) as Record<
    InjectionState,
    number
  >;
}
