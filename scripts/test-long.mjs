// `npm run test:long`: the same fuzz tests with a million inputs instead of a few thousand, and two hundred concurrent creations of
// projects, of both kinds and at both limits, a hundred times.
import { environment, run, setup } from "./setup.mjs";

const node = setup();
const runs = process.env.USHER_FUZZ_RUNS ?? "1000000";
const rounds = process.env.USHER_LEDGER_RUNS ?? "100";
const env = { ...environment(node), USHER_FUZZ_RUNS: runs, USHER_LEDGER_RUNS: rounds };
const tests = (...files) =>
  run(node, "vitest/vitest.mjs", ["run", ...files, "--testTimeout=3600000"], { env });

console.log(`Fuzzing with ${runs} inputs; this takes some minutes …`);
const fuzzed = tests("fuzz", "ledger.property");
console.log(`Creating projects concurrently, ${rounds} times; this takes about half an hour …`);
process.exit(tests("project-limit-burst") || fuzzed);
