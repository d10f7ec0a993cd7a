// A version after this one: this repository under another version, with a policy field that no earlier CRD knows, and
// its chart.
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../cli/usher.ts";

export const NEXT = "0.2.0";
/** The field, a string. */
export const NEW_FIELD = "purpose";

export interface NextVersion {
  readonly chart: string;
  /** The program that its image starts. */
  readonly command: readonly string[];
  readonly remove: () => void;
}

export function nextVersion(): NextVersion {
  const folder = mkdtempSync(join(tmpdir(), "usher-next-"));
  for (const part of ["src", "deploy", "docs", "package.json"])
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const replace = (file: string, pattern: RegExp, by: string) => {
    const path = join(folder, file);
    const text = readFileSync(path, "utf8");
    const changed = text.replace(pattern, by);
    if (changed === text) throw new Error(`${file} has nothing like ${pattern}`);
    writeFileSync(path, changed);
  };
  replace("package.json", /"version": "[^"]+"/, `"version": "${NEXT}"`);
  replace(
    "src/modules/placement/policy/spec-schema.ts",
    /^const spec = \{$/m,
    `const spec = {\n  ${NEW_FIELD}: z.string().nullish().describe("What it is for."),`,
  );
  execFileSync(process.execPath, ["deploy/generate/main.ts"], { cwd: folder });
  return {
    chart: join(folder, "deploy", "chart"),
    command: ["node", join(folder, "src", "cli", "main.ts")],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
