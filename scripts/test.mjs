// `npm test`: all checks, in the order in which a mistake is cheapest to see.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { environment, root, setup } from "./setup.mjs";

const node = setup();
/** Where each run of tests leaves its counts. */
const results = ["tests", "simulation"].map((name) =>
  join(root, "node_modules", `.test-results-${name}.json`),
);
for (const file of results) rmSync(file, { force: true });

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

const [ofTests, ofSimulation] = results;
const reporters = (file) => ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
const given = process.argv.slice(2);
/** What is asked for by name may be in one of both runs alone. */
const some = given.length > 0 ? ["--passWithNoTests"] : [];

// Whole replicas in simulated time only need a processor: with the lowest priority, whenever everything else waits.
const simulation = check([
  "simulation",
  "vitest/vitest.mjs",
  ["run", "--project=simulation", ...some, ...reporters(ofSimulation), ...given],
]);

const waiting = [...checks];
await Promise.all(
  Array.from({ length: AT_A_TIME }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await check(next);
  }),
);

head("tests");
const started = Date.now();
const tests = spawn(
  node,
  [
    join(root, "node_modules", "vitest/vitest.mjs"),
    ...["run", "--project=!simulation", ...some],
    ...[...reporters(ofTests), "--reporter=./scripts/longest-files.mjs"],
    ...given,
  ],
  { cwd: root, stdio: "inherit", env: environment(node) },
);
const [code] = await once(tests, "close");
report("tests", code ?? 3, started);
await simulation;

const counts = results.map((file) =>
  existsSync(file)
    ? JSON.parse(readFileSync(file, "utf8"))
    : {
        numTotalTests: 0,
        numPassedTests: 0,
        numFailedTests: Math.min(1, failed.length),
        numPendingTests: 0,
      },
);
const sum = (figure) => counts.reduce((total, one) => total + one[figure], 0);
if (sum("numTotalTests") === 0 && failed.length === 0) failed.push(`no test in ${given.join(" ")}`);
console.log(failed.length === 0 ? "\nAll steps passed." : `\nFailed: ${failed.join(", ")}.`);
// Tests that need an unavailable control plane are not run, and that must be visible.
const left = sum("numPendingTests") > 0 ? `, ${sum("numPendingTests")} skipped` : "";
console.log(`${sum("numPassedTests")} passed, ${sum("numFailedTests")} failed${left}`);
process.exit(failed.length === 0 ? 0 : 1);
