// The same tree as files, for the Dockerfile and for runtimes that want a folder.
import { chmodSync, lutimesSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Tree } from "./tree.ts";

/** Adds a layer to the existing files. */
export function writeTree(tree: Tree, folder: string, time: Date): void {
  const entries = tree.sorted();
  for (const [path, entry] of entries) {
    const place = join(folder, path);
    if (entry.type === "directory") mkdirSync(place, { recursive: true });
    else if (entry.type === "file") writeFileSync(place, entry.content);
    else symlinkSync(entry.target, place);
    // Afterwards, because the umask applies at creation.
    if (entry.type !== "symlink") chmodSync(place, entry.mode);
  }
  // Last, and the deepest first: writing into a folder changes its time.
  for (const [path] of entries.toReversed()) lutimesSync(join(folder, path), time, time);
}
