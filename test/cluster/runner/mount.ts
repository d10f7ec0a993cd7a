// Writes the files of a volume as a kubelet does: into a new folder, then swaps one symbolic link. A reader sees all
// files of one version or all of the next, and a watcher of the folder sees the swap.
import { createHash } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Files } from "./volumes.ts";

const DATA = "..data";

function fingerprint(files: Files): string {
  const hash = createHash("sha256");
  for (const [path, content] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
    hash.update(path).update("\0").update(String(content.length)).update("\0").update(content);
  }
  return hash.digest("hex");
}

function currentVersion(folder: string): string | undefined {
  try {
    return readlinkSync(join(folder, DATA));
  } catch {
    return undefined;
  }
}

/** Whether a folder is a volume whose files the kubelet writes. */
export function isFilled(folder: string): boolean {
  return currentVersion(folder) !== undefined;
}

/** Top-level names link through `..data`; they change only when a file is added or removed. */
function linkNames(folder: string, files: Files): void {
  const names = new Set([...files.keys()].map((path) => path.split("/")[0] ?? path));
  for (const name of readdirSync(folder)) {
    if (!name.startsWith("..") && !names.has(name))
      rmSync(join(folder, name), { force: true, recursive: true });
  }
  const there = new Set(readdirSync(folder));
  for (const name of names) if (!there.has(name)) symlinkSync(join(DATA, name), join(folder, name));
}

/** One mounted volume, and its last content. */
export class Mount {
  readonly folder: string;
  #held: string | undefined;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  /** An empty folder for the pod to write to, as any user. */
  share(): void {
    chmodSync(this.folder, 0o777);
  }

  /** True if the files have changed. */
  write(files: Files): boolean {
    const next = fingerprint(files);
    if (next === this.#held) return false;
    this.#held = next;
    const before = currentVersion(this.folder);
    const version = mkdtempSync(join(this.folder, "..version-"));
    // Containers of real images run as other users.
    chmodSync(version, 0o755);
    for (const [path, content] of files) {
      const target = join(version, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, content);
    }
    const link = join(this.folder, "..data-next");
    symlinkSync(version.slice(this.folder.length + 1), link);
    renameSync(link, join(this.folder, DATA));
    linkNames(this.folder, files);
    if (before !== undefined) rmSync(join(this.folder, before), { recursive: true, force: true });
    return true;
  }
}
