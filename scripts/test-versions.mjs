// `npm run test:versions`: installation, certificates and the main path of every module on each release of Kubernetes that usher
// supports, one after the other. `npm run test:versions -- 1.34` runs only that one.
import { environment, run, setup } from "./setup.mjs";

const RELEASES = ["1.33", "1.34", "1.35", "1.36", "1.37"];

/** The newest release is that of `npm test`, which has no name. */
const NEWEST = RELEASES.at(-1);

const FILES = ["install", "certificates", "all-modules"].map((name) => `test/e2e/${name}.test.ts`);

const node = setup();
const chosen = process.argv.slice(2);
const unknown = chosen.filter((release) => !RELEASES.includes(release));
if (unknown.length > 0) {
  console.error(`No tests for Kubernetes ${unknown.join(", ")}. Releases: ${RELEASES.join(", ")}.`);
  process.exit(2);
}

const results = [];
for (const release of chosen.length > 0 ? chosen : RELEASES) {
  console.log(`\n── Kubernetes ${release} ${"─".repeat(40)}`);
  console.log("The first time its control plane is built, which takes some ten minutes.");
  const env = { ...environment(node), USHER_KUBERNETES: release === NEWEST ? "" : release };
  const code = run(node, "vitest/vitest.mjs", ["run", "--project", "cluster", ...FILES], { env });
  results.push({ release, passed: code === 0 });
}

console.log("");
for (const { release, passed } of results)
  console.log(`Kubernetes ${release}: ${passed ? "passed" : "FAILED"}`);
const failed = results.filter(({ passed }) => !passed).length;
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
