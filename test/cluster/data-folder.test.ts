import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { makeDataFolder, sweepAbandoned } from "./data-folder.ts";
import { livingOwner, ownerMark } from "./processes/owner.ts";

const parent = mkdtempSync(join(tmpdir(), "usher-sweep-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

/** The id of a process that has ended and has been reaped. */
function deadPid(): number {
  return spawnSync("true").pid;
}

test("a mark names its owner while the owner lives, and not a later process with the same id", () => {
  expect(livingOwner(ownerMark())).toBe(process.pid);
  expect(livingOwner(`${process.pid} Thu Jan  1 00:00:00 1970`)).toBeUndefined();
  expect(livingOwner(`${deadPid()} Thu Jan  1 00:00:00 1970`)).toBeUndefined();
  expect(livingOwner("")).toBeUndefined();
});

test("only folders of dead owners are removed", () => {
  const mine = makeDataFolder(parent);
  const abandoned = makeDataFolder(parent);
  writeFileSync(join(abandoned, "owner"), `${deadPid()} long ago`);
  const justMade = join(parent, "usher-cluster-unmarked");
  mkdirSync(justMade);
  const unmarked = join(parent, "usher-cluster-old-unmarked");
  mkdirSync(unmarked);
  utimesSync(unmarked, 0, 0);
  const unmanaged = join(parent, "something-else");
  mkdirSync(unmanaged);

  expect([...sweepAbandoned(parent)].sort()).toEqual([abandoned, unmarked].sort());
  expect([mine, justMade, unmanaged].map((folder) => existsSync(folder))).toEqual([true, true, true]);
  expect(existsSync(abandoned)).toBe(false);
});
