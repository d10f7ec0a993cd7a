// Processor time that a process has used. Two cores are shared with whatever else runs, and then the clock on the wall says less
// than this. Only Linux has it at this resolution.
import { readdirSync, readFileSync } from "node:fs";

/** Nanoseconds of all threads, or undefined where the system does not say. */
export function processorTime(pid: number): number | undefined {
  try {
    let total = 0;
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      total += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
    }
    return Number.isFinite(total) ? total : undefined;
  } catch {
    return undefined;
  }
}
