// One `go build`, into the cache atomically.
import { spawn } from "node:child_process";
import { mkdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BUILD_FOLDER, buildArguments, type Recipe, readModule, requiredVersion } from "./recipes.ts";

/** How much of Go's output goes into the error. */
const TAIL = 4000;

/** Makes the file `target` from a recipe, or rejects and leaves nothing there. */
export type Compiler = (recipe: Recipe, target: string) => Promise<void>;

function run(go: string, args: readonly string[], cwd: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(go, args, {
      cwd,
      env: { ...process.env, CGO_ENABLED: "0" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-TAIL);
    });
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`go build ended with code ${code}:\n${said}`)),
    );
  });
}

export function goCompiler(go: string): Compiler {
  return async (recipe, target) => {
    const version = requiredVersion(readModule(recipe.module).goMod, recipe.versionOf);
    const args = [...buildArguments(recipe, version), "-o", target, recipe.source];
    await run(go, args, join(BUILD_FOLDER, recipe.program ?? recipe.module));
  };
}

/** Compiles beside the final path and renames: a reader sees a whole binary or none. */
export async function compileInto(path: string, recipe: Recipe, compile: Compiler): Promise<void> {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true });
  const draft = join(folder, `.${basename(path)}.${process.pid}`);
  try {
    await compile(recipe, draft);
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}
