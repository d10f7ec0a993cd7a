// Each cluster has its own folder under the system's temporary folder, marked with its owner. Normally the owner or its
// watchdog removes it; after a power cut, for example, the next start does.
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { livingOwner, ownerMark } from "./processes/owner.ts";

const PREFIX = "usher-cluster-";
const OWNER = "owner";
/** A folder without a mark may be in creation. */
const UNMARKED_FOR_MS = 60_000;

function abandoned(folder: string): boolean {
  try {
    return livingOwner(readFileSync(join(folder, OWNER), "utf8")) === undefined;
  } catch {
    return (
      Date.now() - (statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY) >
      UNMARKED_FOR_MS
    );
  }
}

/** Removes the folders of dead owners. Their processes are gone too: the watchdog killed them, or the machine restarted. */
export function sweepAbandoned(parent = tmpdir()): readonly string[] {
  const swept: string[] = [];
  for (const name of readdirSync(parent)) {
    const folder = join(parent, name);
    if (!name.startsWith(PREFIX) || !abandoned(folder)) continue;
    rmSync(folder, { recursive: true, force: true });
    swept.push(folder);
  }
  return swept;
}

export function makeDataFolder(parent = tmpdir()): string {
  const folder = mkdtempSync(join(realpathSync(parent), PREFIX));
  writeFileSync(join(folder, OWNER), ownerMark());
  return folder;
}
