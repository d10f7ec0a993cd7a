// `npm run deploy`: writes generated files: manifests, monitoring, reference pages.
import { run, setup } from "./setup.mjs";

process.exit(run(setup(), "../deploy/generate/main.ts", process.argv.slice(2)));
