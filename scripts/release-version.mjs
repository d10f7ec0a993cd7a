// `node scripts/release-version.mjs v1.2.3`: exits with 1 if the tag, the package, the chart and the CHANGELOG don't
// name one version.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

const [tag = ""] = process.argv.slice(2);
const wanted = tag.replace(/^v/, "");
const read = (file) => readFileSync(join(root, file), "utf8");
const chart = read("deploy/chart/Chart.yaml");
const named = {
  "package.json": JSON.parse(read("package.json")).version,
  "package-lock.json": JSON.parse(read("package-lock.json")).version,
  "deploy/chart/Chart.yaml, version": /^version: "?([^"\n]+)"?$/m.exec(chart)?.[1],
  "deploy/chart/Chart.yaml, appVersion": /^appVersion: "?([^"\n]+)"?$/m.exec(chart)?.[1],
  "CHANGELOG.md": read("CHANGELOG.md").includes(`\n## ${wanted}`) ? wanted : undefined,
};
const others = Object.entries(named).filter(([, version]) => version !== wanted);
for (const [file, version] of others)
  console.error(
    `${file}: ${version === undefined ? `does not name ${wanted}` : `is of version ${version}`}, and the tag is ${tag}`,
  );
process.exit(others.length === 0 ? 0 : 1);
