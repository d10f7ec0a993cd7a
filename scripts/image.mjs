// `npm run image`: the OCI image of usher for linux/amd64 and linux/arm64.
import { cache, environment, run, setup } from "./setup.mjs";

const node = setup();
const env = { ...environment(node), USHER_CACHE: cache() };
process.exit(run(node, "../deploy/image/main.ts", process.argv.slice(2), { env }));
