// The owner of a lock or a folder. Process ids are reused, so the owner is the id together with the start time.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** In `/proc/<pid>/stat`, counted after the name in parentheses: the state, and the start in clock ticks since boot. */
const STATE = 0;
const START = 19;

/** The start time of a process, in the system's own format; `undefined` if it does not run. */
function startOf(pid: number): string | undefined {
  if (process.platform === "linux") {
    // Not from `ps`, which small images lack.
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      // A zombie process is not alive.
      return fields[STATE] === "Z" ? undefined : fields[START];
    } catch {
      return undefined;
    }
  }
  const env = { ...process.env, LC_ALL: "C", TZ: "UTC" };
  const result = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8", env });
  return result.status === 0 ? result.stdout.trim() || undefined : undefined;
}

/** Whether a process runs. */
export function isRunning(pid: number): boolean {
  return startOf(pid) !== undefined;
}

/** Text that identifies this process for its lifetime. */
export function ownerMark(): string {
  return `${process.pid} ${startOf(process.pid)}`;
}

/** The process id in a mark, if that same process still runs. */
export function livingOwner(mark: string): number | undefined {
  const space = mark.indexOf(" ");
  const pid = Number(mark.slice(0, space));
  if (space < 1 || !Number.isInteger(pid)) return undefined;
  return startOf(pid) === mark.slice(space + 1) ? pid : undefined;
}
