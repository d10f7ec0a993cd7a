import { describeKey, type ReconcileKey, type ReconcileResult } from "../../core/module/reconciler.ts";
import { describeWrite } from "./planned-writes.ts";

/** What a dry run prints for one key. */
export function describeResult(
  module: string,
  key: ReconcileKey,
  { writes, requeueAfter }: ReconcileResult,
): string {
  const head = `${module} ${describeKey(key)}: ${writes.length === 0 ? "nothing to do" : ""}`.trimEnd();
  const lines = writes.map((write) => `  ${describeWrite(write)}\n    ${JSON.stringify(write)}`);
  const tail = requeueAfter === undefined ? [] : [`  requeue after ${requeueAfter} s`];
  return [head, ...lines, ...tail].join("\n");
}
