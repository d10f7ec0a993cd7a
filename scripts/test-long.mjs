// `npm run test:long`: tests that take too long for `npm test`. `npm run test:long -- chaos` runs only that part.
import { environment, run, setup } from "./setup.mjs";

const runs = process.env.USHER_FUZZ_RUNS ?? "1000000";
const worlds = process.env.USHER_SCHEDULING_RUNS ?? "200000";
const seeds = process.env.USHER_SIMULATION_SEEDS ?? "50000";
const rounds = process.env.USHER_LEDGER_RUNS ?? "100";
const histories = process.env.USHER_HISTORIES ?? "2000";

/** Each part with its message, and its test files. */
const PARTS = {
  fuzz: [`Fuzzing with ${runs} inputs; this takes some minutes …`, "fuzz", "ledger.property"],
  scheduling: [
    `Evaluating ${worlds} worlds beside the filters of kube-scheduler 1.33 to 1.37, which are built the first time …`,
    "test/scheduling/",
  ],
  simulation: [
    `Simulating ${seeds} seeds, all plans and all mutants; on two cores this takes some three hours …`,
    "test/simulation/simulation",
  ],
  burst: [
    `Creating projects concurrently, ${rounds} times; this takes about half an hour …`,
    "project-limit-burst",
  ],
  "api-server": [
    `Sending ${histories} histories of 20 requests to a real API server and to the simulated one; this takes some minutes …`,
    "e2e/simulated-api-server",
  ],
  whole: [
    "Running the tests that `npm test` shortens; this takes some ten minutes …",
    "e2e/all-modules",
    "e2e/certificate-installs",
    "e2e/compile",
    "e2e/faults",
    "e2e/gitops",
    "e2e/helm",
    "e2e/node-guard-enable",
    "e2e/placement-drift",
    "e2e/placement-samples",
    "e2e/pod-os-nodes",
    "image/run",
  ],
  chaos: [
    "Breaking an installation in every way, by usher install and by the chart; this takes about half an hour …",
    "test/chaos/",
  ],
};

const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in PARTS));
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(", ")}. Parts: ${Object.keys(PARTS).join(", ")}.`);
  process.exit(2);
}

const node = setup();
const env = {
  ...environment(node),
  USHER_FUZZ_RUNS: runs,
  USHER_SCHEDULING_RUNS: worlds,
  USHER_LEDGER_RUNS: rounds,
  USHER_SIMULATION_SEEDS: seeds,
  USHER_HISTORIES: histories,
  USHER_LONG: "true",
};
let failed = 0;
for (const name of chosen.length > 0 ? chosen : Object.keys(PARTS)) {
  const [says, ...files] = PARTS[name];
  console.log(says);
  failed = run(node, "vitest/vitest.mjs", ["run", ...files, "--testTimeout=3600000"], { env }) || failed;
}
process.exit(failed);
