import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { generatedFiles } from "../deploy/generate/generated-files.ts";
import { KUBERNETES } from "../deploy/generate/kubernetes.ts";
import { OLDER_RELEASES, readModule, requiredVersion } from "./cluster/binaries/recipes.ts";

const root = join(import.meta.dirname, "..");
const files = await generatedFiles();

test.each(files)("$path equals the output of npm run deploy", ({ path, text }) => {
  expect(existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined).toBe(text);
});

test("chart, bundle, README and test:versions name the same releases of Kubernetes", () => {
  const read = (path: string) => readFileSync(join(root, path), "utf8");
  const modules = [...OLDER_RELEASES.map((release) => `kubernetes-${release}`), "kubernetes"];
  const versions = modules.map((module) => requiredVersion(readModule(module).goMod, "k8s.io/kubernetes"));
  const releases = versions.map((version) => version.replace(/^v|\.\d+$/g, ""));
  expect([releases[0], releases.at(-1)]).toEqual([`1.${KUBERNETES.oldest}`, `1.${KUBERNETES.newest}`]);
  expect(read("scripts/test-versions.mjs")).toContain(
    `const RELEASES = ${JSON.stringify(releases).replaceAll(",", ", ")};`,
  );
  for (const version of versions) expect(read("README.md")).toContain(version.replace("v", ""));
  expect(read("deploy/chart/Chart.yaml")).toContain(`kubeVersion: ">=1.${KUBERNETES.oldest}.0-0"`);
});
