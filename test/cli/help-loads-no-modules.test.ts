import { join } from "node:path";
import { expect, test } from "vitest";
import { ended, folder, MAIN, RECORD, ROOT, start } from "./usher.ts";

/** The source files, relative to the clone, and the packages that a call loads. */
async function loadedBy(...args: string[]): Promise<{ files: string[]; packages: string[]; out: string }> {
  const hook = join(folder({ "record.mjs": RECORD }), "record.mjs");
  const { out, err, code } = await ended(start(process.execPath, ["--import", hook, MAIN, ...args]));
  expect(code, err).toBe(0);
  const urls = [...err.matchAll(/^loaded file:\/\/(\S+)$/gm)].map(([, path = ""]) => path);
  const packages = urls.flatMap((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  return {
    files: urls.filter((path) => path.startsWith(`${ROOT}/src/`)).map((path) => path.slice(ROOT.length + 1)),
    packages: [...new Set(packages)],
    out,
  };
}

/** Module declarations and the module list; and, in core, the builders of declarations. */
const LIGHT =
  /^src\/(cli\/|modules\/(index|[\w-]+\/declaration|[\w-]+\/operand-names)\.ts$|core\/(module|drift\/commands)\/\w+\.ts$)/;

test.each([
  ["--help"],
  ["placement", "--help"],
  ["placement", "status", "--help"],
  ["help", "node-labels"],
  ["node-labels", "plan", "--help"],
])("help loads no module's code: usher %s %s %s", async (...args) => {
  const { files, packages, out } = await loadedBy(...args);
  expect(out).toMatch(/^Usage: usher /);
  expect(files).toContain("src/modules/placement/declaration.ts");
  expect(files.filter((file) => !LIGHT.test(file))).toEqual([]);
  expect(files.filter((file) => /reapply|run-command/.test(file))).toEqual([]);
  expect(packages).toEqual(["commander"]);
});

test("a command loads the code of its module", async () => {
  const { files } = await loadedBy("manifests");
  expect(files).toContain("src/modules/placement/index.ts");
});
