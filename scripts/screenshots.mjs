// `npm run screenshots`: pictures of the dashboard for the documents, into docs/images.
import { run, setup } from "./setup.mjs";

process.exit(run(setup(), "../test/dashboard/screenshots.ts", []));
