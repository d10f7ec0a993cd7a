import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Serving, watched } from "../../cli/serving.ts";
import { ended, MAIN, type Ran, ROOT, start } from "../../cli/usher.ts";

/** Runs the real program with the modules that a file of this folder exports. */
export async function programWith(file: string, args: readonly string[], stdin = ""): Promise<Ran> {
  const child = startWith(file, args);
  child.stdin.end(stdin);
  return ended(child);
}

export function servingWith(file: string, args: readonly string[]): Promise<Serving> {
  return watched(startWith(file, ["serve", "--port", "0", "--ops-port", "0", ...args]));
}

function startWith(file: string, args: readonly string[]) {
  const folder = join(ROOT, "test/support/modules");
  return start(process.execPath, ["--import", join(folder, "replace-modules.ts"), MAIN, ...args], {
    env: { ...process.env, USHER_TEST_MODULES: pathToFileURL(join(folder, file)).href },
  });
}
