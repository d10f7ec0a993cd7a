// `npm test`: all checks, in the order in which a mistake is cheapest to see.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { environment, root, run, setup } from "./setup.mjs";

const node = setup();
const results = join(root, "node_modules", ".test-results.json");
rmSync(results, { force: true });

const checks = [
  ["lint and format", "@biomejs/biome/bin/biome", ["check", "."]],
  ["types", "typescript/bin/tsc", ["--noEmit"]],
  ["types of the page", "typescript/bin/tsc", ["-p", "src/dashboard/page"]],
  ["dead code", "knip/bin/knip.js", []],
  ["code that only tests run", "knip/bin/knip.js", ["--production"]],
  ["members that only tests use", "../scripts/unused-members.mjs", []],
];
/** Most of them use one core. */
const AT_A_TIME = 2;

const failed = [];

function report(name, code, started) {
  const result = code === 0 ? "ok" : `failed with code ${code}`;
  console.log(`${name}: ${result}, ${((Date.now() - started) / 1000).toFixed(0)} s`);
  if (code !== 0) failed.push(name);
}

const head = (name) => console.log(`\n── ${name} ${"─".repeat(Math.max(3, 60 - name.length))}`);

/** Its output is shown when it has ended: two run at the same time. */
async function check([name, command, args]) {
  const started = Date.now();
  const child = spawn(node, [join(root, "node_modules", command), ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: environment(node),
  });
  const parts = [];
  child.stdout.on("data", (part) => parts.push(part));
  child.stderr.on("data", (part) => parts.push(part));
  const [code] = await once(child, "close");
  head(name);
  process.stdout.write(Buffer.concat(parts));
  report(name, code ?? 3, started);
}

const waiting = [...checks];
await Promise.all(
  Array.from({ length: AT_A_TIME }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await check(next);
  }),
);

head("tests");
const started = Date.now();
const code = run(node, "vitest/vitest.mjs", [
  "run",
  "--reporter=default",
  "--reporter=json",
  "--reporter=./scripts/longest-files.mjs",
  `--outputFile.json=${results}`,
  ...process.argv.slice(2),
]);
report("tests", code, started);

const counts = existsSync(results)
  ? JSON.parse(readFileSync(results, "utf8"))
  : { numPassedTests: 0, numFailedTests: 1, numPendingTests: 0 };
console.log(failed.length === 0 ? "\nAll steps passed." : `\nFailed: ${failed.join(", ")}.`);
// Tests that need an unavailable control plane are not run, and that must be visible.
const left = counts.numPendingTests > 0 ? `, ${counts.numPendingTests} skipped` : "";
console.log(`${counts.numPassedTests} passed, ${counts.numFailedTests} failed${left}`);
process.exit(failed.length === 0 ? 0 : 1);
