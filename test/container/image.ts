// The image for tests: built once per state of the clone, and shared by all files and runs with that state.
import { spawnSync } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { withLock } from "../cluster/binaries/lock.ts";
import { cacheFolder } from "../cluster/binaries/places.ts";
import type { ImageRoot } from "../cluster/runner/contained.ts";
import { configurationFor } from "./layout.ts";
import { ensurePrograms } from "./programs.ts";
import { SECCOMP_FILTER } from "./seccomp.ts";

const ROOT = join(import.meta.dirname, "..", "..");

/** The files that the image is made of. */
const INPUTS = ["src", "bin", "scripts", "deploy/image", "package.json", "package-lock.json", "LICENSE"];

/** Long enough for any run of tests that still uses it. */
const KEPT_MS = 6 * 3_600_000;

function files(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .filter((name) => name !== "node_modules" && !name.endsWith(".test.ts"))
    .flatMap((name) => files(join(path, name)));
}

function inputKey(): string {
  const hash = createHash("sha256");
  for (const file of INPUTS.flatMap((name) => files(join(ROOT, name))).sort())
    hash.update(file.slice(ROOT.length)).update("\0").update(readFileSync(file)).update("\0");
  return hash.digest("hex").slice(0, 16);
}

/** Builds with the clone's own command. `cache` holds downloads and layers. */
export function build(output: string, args: readonly string[] = [], cache?: string): void {
  const script = join(ROOT, "deploy", "image", "main.ts");
  const env = { ...process.env, USHER_CACHE: cache ?? cacheFolder(process.env) };
  const result = spawnSync(process.execPath, [script, "--output", output, ...args], {
    encoding: "utf8",
    env,
  });
  if (result.status !== 0) throw new Error(`The image could not be built: ${result.stderr.trim()}`);
}

/** Debian replaces packages, so a locked one may become unavailable: the lock must then be renewed, and nothing else is hidden. */
function buildOrRenew(output: string): void {
  try {
    build(output);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.includes("is not in the archives")) throw error;
    process.stderr.write(`STALE LOCK: ${error.message}\nThe tests go on with Debian's packages of today.\n`);
    build(output, ["--update", "--lock", join(tmpdir(), `usher-${randomUUID()}.lock.json`)]);
  }
}

/** The folder that `npm run image` would fill. Read-only for tests. */
export async function ensureImage(): Promise<string> {
  const parent = join(cacheFolder(process.env), "image", "built");
  const output = join(parent, inputKey());
  mkdirSync(parent, { recursive: true });
  const waiting = (pid: number): unknown =>
    process.stderr.write(`waiting for process ${pid}, which builds the image …\n`);
  await withLock(join(parent, "building.lock"), waiting, async () => {
    if (!existsSync(output)) {
      const draft = join(parent, `draft-${randomUUID()}`);
      buildOrRenew(draft);
      renameSync(draft, output);
    }
    utimesSync(output, new Date(), new Date());
    for (const name of readdirSync(parent)) {
      const age =
        Date.now() - (statSync(join(parent, name), { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
      if (age > KEPT_MS) rmSync(join(parent, name), { recursive: true, force: true });
    }
  });
  return output;
}

export const HOST_ARCHITECTURE = process.arch === "arm64" ? "arm64" : "amd64";

/** The image as a cluster's pods run it; remove `root` afterwards. */
export async function imageForCluster(): Promise<ImageRoot> {
  await ensurePrograms("runc", SECCOMP_FILTER);
  const layout = join(await ensureImage(), "oci");
  const configuration = configurationFor(layout, HOST_ARCHITECTURE);
  const { Entrypoint, Env, User } = configuration.config as Record<string, string[]>;
  const env = (Env ?? []).map((one) => one.split(/=(.*)/s).slice(0, 2));
  return {
    root: copyRoot(join(layout, ".."), HOST_ARCHITECTURE),
    entrypoint: Entrypoint ?? [],
    env: Object.fromEntries(env),
    user: Number(User),
  };
}

/** A root to run containers in: links to the same files, and its own folders, in which a runtime creates mount points. */
export function copyRoot(image: string, architecture: "amd64" | "arm64"): string {
  const folder = mkdtempSync(join(tmpdir(), "usher-root-"));
  const source = join(image, `linux-${architecture}`, "rootfs");
  const { status, stderr } = spawnSync("cp", ["-al", source, folder], { encoding: "utf8" });
  // Links can't cross file systems.
  if (status !== 0) {
    const copied = spawnSync("cp", ["-a", source, folder], { encoding: "utf8" });
    if (copied.status !== 0) throw new Error(`${stderr}\n${copied.stderr}`);
  }
  return join(folder, "rootfs");
}
