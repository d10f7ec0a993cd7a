// The binaries of the test control plane: used where found, built once where missing.
import { join } from "node:path";
import { type Compiler, compileInto, goCompiler } from "./binaries/compile.ts";
import { withLock } from "./binaries/lock.ts";
import type { Needed } from "./binaries/needed.ts";
import { cacheFolder, type Environment, findGo, isExecutable, readyMade } from "./binaries/places.ts";
import { about, type Output, showProgress } from "./binaries/progress.ts";
import {
  type BinaryName,
  cachePath,
  type Recipe,
  readModule,
  recipesFor,
  schedulerOracle,
  TOOLS,
  type ToolName,
} from "./binaries/recipes.ts";

export type Binaries = Readonly<Record<BinaryName, string>>;

export interface BinaryOptions {
  readonly env?: Environment;
  readonly output?: Output;
  /** Stands in for Go in tests of this file. */
  readonly compile?: Compiler;
}

/** The Kubernetes release of the control plane, such as 1.34. @default the newest */
const RELEASE = "USHER_KUBERNETES";

const GO_MISSING = [
  "Go is not installed, and the test control plane (etcd, kube-apiserver and others) is built with it, once.",
  "Install Go 1.26 or newer (https://go.dev/dl, or your system's package `golang`) so that `go version` works.",
].join(" ");

function cached(recipe: Recipe, env: Environment): string {
  const platform = `${process.platform}-${process.arch}`;
  return join(
    cacheFolder(env),
    "binaries",
    cachePath(recipe, readModule(recipe.module, recipe.program), platform),
  );
}

function find(recipe: Recipe, env: Environment): string | undefined {
  const path = readyMade(recipe.name, env) ?? cached(recipe, env);
  return isExecutable(path) ? path : undefined;
}

/** Whether this machine can run a cluster, possibly after a build; if not, why, and what to do. */
export function clusterAvailable(
  env: Environment = process.env,
): { available: true } | { available: false; reason: string } {
  if (process.platform === "win32")
    return { available: false, reason: "The test control plane does not run on Windows; WSL does." };
  const missing = recipesFor(env[RELEASE]).filter((recipe) => find(recipe, env) === undefined);
  if (missing.length === 0 || findGo(env) !== undefined) return { available: true };
  return {
    available: false,
    reason: `${GO_MISSING} Missing: ${missing.map(({ name }) => name).join(", ")}.`,
  };
}

async function buildMissing(
  recipes: readonly Recipe[],
  env: Environment,
  output: Output,
  compile: Compiler,
): Promise<void> {
  // Checked again under the lock: another process may have just built them.
  const missing = recipes.filter((recipe) => find(recipe, env) === undefined);
  if (missing.length > 1) {
    const seconds = missing.reduce((sum, { usualSeconds }) => sum + usualSeconds, 0);
    output.write(
      `${missing.length} programs are built from source, once: usually about ${about(seconds)} in all.\n`,
    );
  }
  for (const [index, recipe] of missing.entries()) {
    const step = `building ${recipe.name} (${index + 1} of ${missing.length})`;
    const end = showProgress(output, `${step}, usually about ${about(recipe.usualSeconds)}`);
    try {
      await compileInto(cached(recipe, env), recipe, compile);
      end(`built ${recipe.name}`);
    } catch (error) {
      end(`could not build ${recipe.name}`);
      throw error;
    }
  }
}

/** The paths of the built binaries; builds missing ones. */
async function ensure(recipes: readonly Recipe[], options: BinaryOptions): Promise<string[]> {
  const { env = process.env, output = process.stderr } = options;
  if (recipes.some((recipe) => find(recipe, env) === undefined)) {
    const go = findGo(env);
    const compile = options.compile ?? (go === undefined ? undefined : goCompiler(go));
    if (compile === undefined) throw new Error(GO_MISSING);
    const waiting = (pid: number): unknown =>
      output.write(`waiting for process ${pid}, which is building the same …\n`);
    await withLock(join(cacheFolder(env), "building.lock"), waiting, () =>
      buildMissing(recipes, env, output, compile),
    );
  }
  return recipes.map((recipe) => find(recipe, env) ?? cached(recipe, env));
}

/** All binaries; builds missing ones. The first time takes about a quarter of an hour on two cores. */
export async function ensureBinaries(options: BinaryOptions = {}): Promise<Binaries> {
  const recipes = recipesFor((options.env ?? process.env)[RELEASE]);
  const paths = await ensure(recipes, options);
  return Object.fromEntries(recipes.map(({ name }, i) => [name, paths[i]])) as Binaries;
}

/** Builds the missing programs of a run, with one count over all of them. */
export async function ensureNeeded(needed: Needed, options: BinaryOptions = {}): Promise<void> {
  const controlPlane = needed.controlPlane ? recipesFor((options.env ?? process.env)[RELEASE]) : [];
  await ensure([...controlPlane, ...needed.tools.map((name) => TOOLS[name])], options);
}

/** The path of a tool, built if missing. */
export async function ensureTool(name: ToolName, options: BinaryOptions = {}): Promise<string> {
  const [path = ""] = await ensure([TOOLS[name]], options);
  return path;
}

/** The path of a release's scheduler oracle, built if missing. @default the newest */
export async function ensureSchedulerOracle(release = "", options: BinaryOptions = {}): Promise<string> {
  const [path = ""] = await ensure([schedulerOracle(release)], options);
  return path;
}

/** Why this machine can't have the oracles of these releases; empty if it can, possibly after a build. */
export function oracleUnavailable(releases: readonly string[], env: Environment = process.env): string {
  const missing = releases.map(schedulerOracle).some((recipe) => find(recipe, env) === undefined);
  return missing && findGo(env) === undefined ? GO_MISSING : "";
}
