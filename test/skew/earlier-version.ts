// The version that an upgrade starts from: the last commit before usher could be installed by a chart.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../cli/usher.ts";

const COMMIT = "eeab7436";

/** Its files in their own folder, with this repository's packages; `undefined` if the history does not contain it. */
export function earlierVersion(): { readonly folder: string; readonly remove: () => void } | undefined {
  try {
    execFileSync("git", ["cat-file", "-e", `${COMMIT}^{commit}`], { cwd: ROOT, stdio: "ignore" });
  } catch {
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), "usher-earlier-"));
  const archive = execFileSync("git", ["archive", COMMIT, "src", "bin", "package.json", "examples"], {
    cwd: ROOT,
    maxBuffer: 256 * 1024 * 1024,
  });
  execFileSync("tar", ["x", "-C", folder], { input: archive });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export const NOT_THERE = `commit ${COMMIT} is not in this clone's history (a shallow clone?): the upgrade from it was not tried`;
