// The core of each process. Otherwise the kernel moves server and load between cores, and a ratio of two runs compares
// luck.
import { spawn, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";

const SERVER_CORE = "0";
const LOAD_CORE = "1";

const CORES = availableParallelism();

/** Whether server and load can be separated. */
export const pinned = CORES >= 2 && spawnSync("taskset", ["-V"], { stdio: "ignore" }).status === 0;

/** Keeps a running server, all its threads, on the server's core. */
export function pinServer(pid: number): void {
  pin(pid, SERVER_CORE);
}

/** Keeps a running process on the load's core, and what it starts from here on. */
export function pinLoad(pid: number): void {
  pin(pid, LOAD_CORE);
}

export function unpin(pid: number): void {
  pin(pid, `0-${CORES - 1}`);
}

function pin(pid: number, cores: string): void {
  if (pinned) spawnSync("taskset", ["-a", "-c", "-p", cores, String(pid)], { stdio: "ignore" });
}

/** A command line that runs the load on its own core. */
export function onLoadCore(program: string, args: readonly string[]): readonly [string, readonly string[]] {
  return pinned ? ["taskset", ["-c", LOAD_CORE, program, ...args]] : [program, args];
}

/** Ends by itself if the benchmark dies: longer than any benchmark takes. */
const AWAKE_SECONDS = 1_800;

/**
 * Keeps the load's core awake, with work of idle priority. A slightly slower server leaves the load idle more often,
 * and must then wake its core for each response, which in a virtual machine is expensive: 20 µs of additional work per
 * request were measured as 44 without this, and as 19 with it. Over a real network there is no such cost.
 */
export function keepLoadCoreAwake(): () => void {
  if (!pinned) return () => undefined;
  const loop = `const end = Date.now() + ${AWAKE_SECONDS * 1_000}; while (Date.now() < end);`;
  const args = ["-c", LOAD_CORE, "chrt", "--idle", "0", process.execPath, "-e", loop];
  const child = spawn("taskset", args, { stdio: "ignore" });
  // Without chrt it is only less precise.
  child.once("error", () => undefined);
  const stop = () => void child.kill("SIGKILL");
  process.once("exit", stop);
  return stop;
}
