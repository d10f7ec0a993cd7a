// One builder at a time: two test runs that start together must not both spend a quarter of an hour on the same binary.
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { livingOwner, ownerMark } from "../processes/owner.ts";

const LOOK_AGAIN_MS = 500;

/**
 * A hard link fails if the name is taken, and the file has its content from the start: the file system decides which
 * process was first.
 */
function take(path: string, mark: string): boolean {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, mark);
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/**
 * Runs `work` while holding the lock file; waits for another holder, and takes over from one that died. If two
 * processes take over at the same instant, both work: that costs time but is harmless, because results are renamed into
 * place.
 */
export async function withLock<T>(
  path: string,
  onWait: (pid: number) => void,
  work: () => Promise<T>,
): Promise<T> {
  mkdirSync(dirname(path), { recursive: true });
  const mark = ownerMark();
  let reported = false;
  while (!take(path, mark)) {
    const held = read(path);
    if (held === undefined) continue;
    const pid = livingOwner(held);
    if (pid === undefined) {
      rmSync(path, { force: true });
      continue;
    }
    if (!reported) onWait(pid);
    reported = true;
    await sleep(LOOK_AGAIN_MS);
  }
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}
