// `npm run soak`: an installed usher under steady load for twenty minutes.
import { run, setup } from "./setup.mjs";

process.exit(run(setup(), "../bench/soak/main.ts", process.argv.slice(2)));
