// Files of a Go module that are only read, such as definitions, pinned by the go.sum beside the go.mod that requires
// the module.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { findGo } from "./places.ts";
import { BUILD_FOLDER } from "./recipes.ts";

/** The folder of a module that `build/NAME/go.mod` requires, downloaded if missing. */
export function moduleFolder(name: string, module: string): string {
  const go = findGo(process.env);
  if (go === undefined)
    throw new Error(`Go is not installed, and the files of ${module} are downloaded with it.`);
  const text = execFileSync(go, ["mod", "download", "-json", module], {
    cwd: join(BUILD_FOLDER, name),
    encoding: "utf8",
  });
  return (JSON.parse(text) as { readonly Dir: string }).Dir;
}
