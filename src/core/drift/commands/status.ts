import type { Json } from "../../json.ts";
import type { CommandCode } from "../../module/command.ts";
import { DRIFT_STATES, type InjectionState } from "../injections.ts";
import type { StatusArgs } from "./commands.ts";
import { ofPolicy } from "./policy-argument.ts";
import { scanWorkloads, type WorkloadStatus } from "./scan-workloads.ts";
import { countsText, STATUS_COLUMNS, statusRows } from "./status-table.ts";

/** Shows how stored workloads compare with current policies. */
export const statusCode: CommandCode<StatusArgs> = {
  *run(call) {
    const { policy } = call.args;
    const { workloads: all, unread } = yield* scanWorkloads(call);
    const workloads = policy === undefined ? all : ofPolicy(policy, all, call);
    if ("wrong" in workloads) return workloads;
    const summary = countsOf(workloads);
    const drifted = summary.stale + summary.orphaned + summary.missing > 0;
    const chosen = policy === undefined ? "--all" : `--policy ${policy}`;
    const where = call.namespace === undefined ? "-A" : `-n ${call.namespace}`;
    const next = `Run "${call.calledAs} reapply ${chosen} ${where} --dry-run" to preview the repair.`;
    return {
      data: { workloads, summary, unread } as unknown as Json,
      table: { columns: STATUS_COLUMNS, rows: statusRows(workloads) },
      summary: countsText(workloads.length, summary),
      notes: drifted && call.live ? [next] : [],
      errors: unread.map((reason) => `not scanned: ${reason}`),
      exit: unread.length > 0 ? "failed" : drifted ? "found" : "fine",
    };
  },
};

function countsOf(workloads: readonly WorkloadStatus[]): Record<InjectionState, number> {
  const states = workloads.flatMap(({ carries }) => carries.map(({ state }) => state));
  const count = (wanted: InjectionState) => states.filter((state) => state === wanted).length;
  return Object.fromEntries(DRIFT_STATES.map((state) => [state, count(state)])) as Record<
    InjectionState,
    number
  >;
}
