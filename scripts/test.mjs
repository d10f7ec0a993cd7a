// `npm test`: all checks, in the order in which a mistake is cheapest to see.
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root, run, setup } from "./setup.mjs";

const node = setup();
const results = join(root, "node_modules", ".test-results.json");
rmSync(results, { force: true });

const steps = [
  ["lint and format", "@biomejs/biome/bin/biome", ["check", "."]],
  ["types", "typescript/bin/tsc", ["--noEmit"]],
  ["types of the page", "typescript/bin/tsc", ["-p", "src/dashboard/page"]],
  ["dead code", "knip/bin/knip.js", []],
  ["code that only tests run", "knip/bin/knip.js", ["--production"]],
  ["members that only tests use", "../scripts/unused-members.mjs", []],
  [
    "tests",
    "vitest/vitest.mjs",
    [
      "run",
      "--reporter=default",
      "--reporter=json",
      "--reporter=./scripts/longest-files.mjs",
      `--outputFile.json=${results}`,
      ...process.argv.slice(2),
    ],
  ],
];

const failed = [];
for (const [name, command, args] of steps) {
  console.log(`\n── ${name} ${"─".repeat(Math.max(3, 60 - name.length))}`);
  const started = Date.now();
  const code = run(node, command, args);
  console.log(
    `${name}: ${code === 0 ? "ok" : `failed with code ${code}`}, ${((Date.now() - started) / 1000).toFixed(0)} s`,
  );
  if (code !== 0) failed.push(name);
}

const counts = existsSync(results)
  ? JSON.parse(readFileSync(results, "utf8"))
  : { numPassedTests: 0, numFailedTests: 1, numPendingTests: 0 };
console.log(failed.length === 0 ? "\nAll steps passed." : `\nFailed: ${failed.join(", ")}.`);
// Tests that need an unavailable control plane are not run, and that must be visible.
const left = counts.numPendingTests > 0 ? `, ${counts.numPendingTests} skipped` : "";
console.log(`${counts.numPassedTests} passed, ${counts.numFailedTests} failed${left}`);
process.exit(failed.length === 0 ? 0 : 1);
