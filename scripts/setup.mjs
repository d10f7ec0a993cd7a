// Prepares a fresh clone: dependencies as locked, and a Node that runs TypeScript. Plain JavaScript, because it runs
// before either is installed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(root, "node_modules");
const stamp = join(modules, ".usher-installed");
const nodeFolder = join(root, "scripts", "node");
const localNode = join(modules, ".bin", "node");

/** The first major version of Node that runs `.ts` files and is supported. */
const NODE_MAJOR = 24;

function lockHash() {
  const hash = createHash("sha256").update(`${process.platform} ${process.arch}`);
  for (const folder of [root, nodeFolder]) hash.update(readFileSync(join(folder, "package-lock.json")));
  return hash.digest("hex");
}

/** By either Node: a clone that was set up by an old Node runs its scripts with the one that was installed for it. */
function installed() {
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== lockHash()) return false;
  return isRecent(process.versions.node) || existsSync(localNode);
}

/** Installs a folder's package-lock.json. No listed package needs to run a script. */
function installLock(folder) {
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const result = spawnSync(npm, args, { cwd: folder, stdio: ["ignore", 2, 2] });
  if (result.error === undefined && result.status === 0) return;
  console.error(
    "\nThe dependencies could not be installed; npm's message is above. If the registry can't be reached, try `npm ping`, then run this again.",
  );
  process.exit(2);
}

function install() {
  console.error("Installing what package-lock.json lists (about half a minute the first time) …");
  const started = Date.now();
  installLock(root);
  if (!isRecent(process.versions.node)) installNode();
  // `npm ci` has just removed the link of the Node that runs this.
  else if (process.execPath.startsWith(nodeFolder)) linkNode();
  mkdirSync(modules, { recursive: true });
  writeFileSync(stamp, lockHash());
  console.error(`Installed in ${((Date.now() - started) / 1000).toFixed(0)} s.`);
}

function isRecent(version) {
  return Number(version.split(".")[0]) >= NODE_MAJOR;
}

/** A recent Node from the registry, which npm scripts then find first. Not a dependency: consumers of the package have their own. */
function installNode() {
  console.error(`This is Node ${process.versions.node}; installing Node ${NODE_MAJOR} for this clone …`);
  installLock(nodeFolder);
  linkNode();
}

function linkNode() {
  const installed = join(nodeFolder, "node_modules", ".bin", "node");
  if (existsSync(installed)) symlinkSync(installed, localNode);
}

/** The Node to run usher with: this one if it is new enough, else the one that was installed for this clone. */
function findNode() {
  if (isRecent(process.versions.node)) return process.execPath;
  if (existsSync(localNode)) return localNode;
  console.error(
    `Usher needs Node ${NODE_MAJOR} or newer. This is Node ${process.versions.node}, and the registry has no ready-made Node ${NODE_MAJOR} for ${process.platform} ${process.arch}: install one and run this again.`,
  );
  process.exit(2);
}

/** Installs missing dependencies and returns the Node to use. Quick if nothing is missing. */
export function setup() {
  if (!installed()) install();
  return findNode();
}

/** A cache between runs, outside the clone. */
export function cache() {
  return process.env.USHER_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "usher");
}

/**
 * Environment in which tools of this clone, and the right Node, are found first. Node caches compiled code: otherwise
 * it strips the types at every start, which takes as long as everything else and 35 MB.
 */
export function environment(node) {
  const path = [dirname(node), join(modules, ".bin"), process.env.PATH ?? ""].join(delimiter);
  // glibc gives each thread its own arena; two are enough, and ten thousand policies take 10 MB less.
  return { NODE_COMPILE_CACHE: join(cache(), "compiled"), MALLOC_ARENA_MAX: "2", ...process.env, PATH: path };
}

/** Runs one of this clone's tools, and returns its exit code. */
export function run(node, command, args, options = {}) {
  const result = spawnSync(node, [join(modules, command), ...args], {
    cwd: root,
    stdio: "inherit",
    env: environment(node),
    ...options,
  });
  return result.status ?? 3;
}

// From the command line it only sets up: `node scripts/setup.mjs`.
if (process.argv[1] === fileURLToPath(import.meta.url)) setup();
