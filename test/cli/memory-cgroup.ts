import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A memory cgroup, like a container's. */
export interface MemoryCgroup {
  /** Runs a command in the cgroup; to be put before the command's words. */
  readonly command: readonly string[];
  readonly remove: () => void;
}

/** Undefined where this machine can't create one: without root, or inside a container. */
export function memoryCgroup(bytes: number): MemoryCgroup | undefined {
  const name = `usher-test-${process.pid}`;
  const hierarchies = [
    { folder: join("/sys/fs/cgroup/memory", name), limit: "memory.limit_in_bytes" },
    { folder: join("/sys/fs/cgroup", name), limit: "memory.max" },
  ];
  for (const { folder, limit } of hierarchies) {
    try {
      mkdirSync(folder);
    } catch {
      continue;
    }
    const remove = () => rmdirSync(folder);
    try {
      writeFileSync(join(folder, limit), String(bytes));
      const script = `echo $$ > ${join(folder, "cgroup.procs")} && exec "$@"`;
      return { command: ["sh", "-c", script, "sh"], remove };
    } catch {
      remove();
    }
  }
  return undefined;
}

/** The peak memory of a process so far. */
export function peakBytes(pid: number): number {
  const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) * 1_024;
}
