// Programs of the benchmark that are written in Go: built once from the versions pinned in their go.mod, into the cache
// outside the repository.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { withLock } from "../../test/cluster/binaries/lock.ts";
import { cacheFolder, isExecutable } from "../../test/cluster/binaries/places.ts";
import { showProgress } from "../../test/cluster/binaries/progress.ts";
import { output } from "./child-process.ts";

/** A build from nothing took one to two minutes on two cores; this is for a slow network. */
const BUILD_WITHIN_MS = 15 * 60_000;

export interface GoProgram {
  readonly name: string;
  /** With go.mod, go.sum and, if it is ours, the source. */
  readonly folder: string;
  /** What to build: a package, or `.` */
  readonly source: string;
  readonly version?: string;
}

/** The path of the binary. */
export async function goProgram(go: string, program: GoProgram): Promise<string> {
  const { name, folder, version = "" } = program;
  const hash = createHash("sha256");
  for (const file of readdirSync(folder).sort())
    if (/\.(?:go|mod|sum)$/.test(file)) hash.update(readFileSync(join(folder, file)));
  const platform = `${process.platform}-${process.arch}`;
  const key = [name, version, hash.digest("hex").slice(0, 12)].filter((part) => part !== "").join("-");
  const binary = join(cacheFolder(process.env), "load", platform, key, name);
  if (!isExecutable(binary)) {
    const waiting = (pid: number) =>
      process.stderr.write(`waiting for process ${pid}, which is building the same …\n`);
    await withLock(join(dirname(binary), "building.lock"), waiting, () => build(go, program, binary));
  }
  return binary;
}

async function build(go: string, { name, folder, source }: GoProgram, binary: string): Promise<void> {
  if (isExecutable(binary)) return;
  mkdirSync(dirname(binary), { recursive: true });
  const end = showProgress(process.stderr, `building ${name}, once, usually one to two minutes`);
  const draft = `${binary}.${process.pid}`;
  try {
    const flags = ["-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", draft];
    await output(go, ["-C", folder, "build", ...flags, source], BUILD_WITHIN_MS);
    renameSync(draft, binary);
    end(`built ${name}`);
  } catch (error) {
    end(`could not build ${name}`);
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}
