// Downloads the files that the locks name, once, and never uses any other byte.
import { spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Apt } from "./apt.ts";
import type { DebianPackage, NodePackage } from "./lock.ts";

export class Fetcher {
  readonly #folder: string;
  readonly apt: Apt;

  /** Keeps everything in the folder. */
  constructor(folder: string) {
    this.#folder = folder;
    this.apt = new Apt(join(folder, "apt"));
  }

  /** The .deb, checked; its place on disk, because `dpkg-deb` reads files. */
  debian(locked: DebianPackage): string {
    const file = this.#kept(`${locked.sha256}.deb`, (into) => this.apt.download(locked, into));
    check(file, `${locked.name} ${locked.version}`, "sha256", locked.sha256, "hex");
    return file;
  }

  /** The registry's archive of Node, checked. */
  node(locked: NodePackage): Buffer {
    const { name, version, integrity } = locked;
    const file = this.#kept(`${name}-${version}.tgz`, (into) => npmPack(`${name}@${version}`, into));
    const [algorithm = "", expected = ""] = integrity.split(/-(.*)/s);
    return check(file, `${name} ${version}`, algorithm, expected, "base64");
  }

  /** A file that is there whole or not at all. */
  #kept(name: string, fetch: (into: string) => void): string {
    const file = join(this.#folder, name);
    if (existsSync(file)) return file;
    const draft = join(this.#folder, `draft-${randomUUID()}`);
    mkdirSync(draft, { recursive: true });
    try {
      fetch(draft);
      const [fetched] = readdirSync(draft);
      if (fetched === undefined) throw new Error(`nothing was downloaded for ${name}`);
      renameSync(join(draft, fetched), file);
      return file;
    } finally {
      rmSync(draft, { recursive: true, force: true });
    }
  }
}

function npmPack(specification: string, into: string): void {
  const args = ["pack", specification, "--pack-destination", into, "--loglevel=error"];
  const { status, stderr, error } = spawnSync("npm", args, { encoding: "utf8" });
  if (status !== 0)
    throw new Error(`npm can't fetch ${specification}: ${error?.message ?? String(stderr).trim()}`);
}

/** The content of a file that has the expected hash; any other is removed, so that the next run downloads it again. */
function check(
  file: string,
  what: string,
  algorithm: string,
  expected: string,
  encoding: "hex" | "base64",
): Buffer {
  const content = readFileSync(file);
  const actual = createHash(algorithm).update(content).digest(encoding);
  if (actual === expected) return content;
  rmSync(file, { force: true });
  throw new Error(
    `${what} has the ${algorithm} ${actual}, and the lock says ${expected}: it is not what was locked.`,
  );
}
