// CPU time of a process. Two cores are shared with other work, so elapsed time is less precise. Only Linux has it at
// this resolution.
import { readdirSync, readFileSync } from "node:fs";

/** Nanoseconds of all threads, or undefined if the system does not provide it. */
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
