// Which core runs what. Left to itself the kernel moves server and load between cores, and a ratio of two runs then compares
// how lucky they were.
import { spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";

const SERVER_CORE = "0";
const LOAD_CORE = "1";

/** Whether server and load can be kept apart. */
export const pinned =
  availableParallelism() >= 2 && spawnSync("taskset", ["-V"], { stdio: "ignore" }).status === 0;

/** Keeps a running server, all its threads, on the server's core. */
export function pinServer(pid: number): void {
  if (pinned) spawnSync("taskset", ["-a", "-c", "-p", SERVER_CORE, String(pid)], { stdio: "ignore" });
}

/** A command line that runs the load on its own core. */
export function onLoadCore(program: string, args: readonly string[]): readonly [string, readonly string[]] {
  return pinned ? ["taskset", ["-c", LOAD_CORE, program, ...args]] : [program, args];
}
