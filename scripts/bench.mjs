// `npm run bench`: measurements outside the test runner, on plain Node.
import { run, setup } from "./setup.mjs";

process.exit(run(setup(), "../bench/main.ts", process.argv.slice(2)));
