// Registry packages that single tests need, apart from usher's own dependencies.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { cacheFolder } from "../cluster/binaries/places.ts";

/**
 * Installs the packages of a folder's package-lock.json, once, outside the clone; returns the path. Copies the folder's
 * other files too.
 */
export function installLocked(source: string): string {
  const lock = readFileSync(join(source, "package-lock.json"));
  const name = `${basename(source)}-${createHash("sha256").update(lock).digest("hex").slice(0, 12)}`;
  const folder = join(cacheFolder(process.env), name);
  mkdirSync(folder, { recursive: true });
  cpSync(source, folder, { recursive: true, force: true });
  if (!existsSync(join(folder, "node_modules", ".package-lock.json"))) {
    const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    execFileSync("npm", args, { cwd: folder, stdio: "pipe" });
  }
  return folder;
}
