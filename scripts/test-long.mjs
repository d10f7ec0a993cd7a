// `npm run test:long`: the same fuzz tests with a million inputs instead of a few thousand.
import { environment, run, setup } from "./setup.mjs";

const node = setup();
const runs = process.env.USHER_FUZZ_RUNS ?? "1000000";
console.log(`Fuzzing with ${runs} inputs; this takes some minutes …`);
const env = { ...environment(node), USHER_FUZZ_RUNS: runs };
process.exit(run(node, "vitest/vitest.mjs", ["run", "fuzz", "--testTimeout=3600000"], { env }));
