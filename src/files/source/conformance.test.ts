import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ObjectRef, sourceConformance } from "../../../test/conformance/source.ts";
import { Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { stringAt } from "../../core/json.ts";
import { Assembly } from "../../core/module/assembly.ts";
import { openFiles } from "./file-source.ts";

function fileOf(directory: string, ref: Pick<ObjectRef, "kind" | "name">): string {
  return join(directory, `${ref.kind.toLowerCase()}-${ref.name}.json`);
}

sourceConformance("a directory of files", async (modules) => {
  const directory = await mkdtemp(join(tmpdir(), "usher-conformance-"));
  const assembly = new Assembly(modules, DEFAULT_INSTALLATION, new Gates([]));
  const source = await openFiles({ directory, assembly, report: () => {}, watch: false });
  return {
    source,
    put: async (objects) => {
      for (const object of objects) {
        const name = stringAt(object, "metadata", "name") ?? "";
        const path = fileOf(directory, { kind: stringAt(object, "kind") ?? "", name });
        await writeFile(path, JSON.stringify(object));
      }
    },
    remove: async (refs) => {
      for (const ref of refs) await rm(fileOf(directory, ref), { force: true });
    },
    caughtUp: () => source.refresh(),
    stop: async () => {
      await source.stop();
      await rm(directory, { recursive: true });
    },
  };
});
