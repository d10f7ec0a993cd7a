import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Serving, watched } from "../../cli/serving.ts";
import { MAIN, ROOT, start } from "../../cli/usher.ts";

/** Serves with the real program and the modules that a file of this folder exports. */
export function servingWith(file: string, args: readonly string[]): Promise<Serving> {
  const folder = join(ROOT, "test/support/modules");
  const hook = ["--import", join(folder, "replace-modules.ts")];
  const child = start(process.execPath, [...hook, MAIN, "serve", "--port", "0", "--ops-port", "0", ...args], {
    env: { ...process.env, USHER_TEST_MODULES: pathToFileURL(join(folder, file)).href },
  });
  return watched(child);
}
