// `npm run simulate`: deterministic simulation of whole replicas; see docs/simulation.md.
import { run, setup } from "./setup.mjs";

process.exit(run(setup(), "../test/simulation/main.ts", process.argv.slice(2)));
