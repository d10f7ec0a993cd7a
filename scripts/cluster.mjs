// `npm run cluster`: a real control plane on this machine, until Ctrl-C.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { environment, root, setup } from "./setup.mjs";

const node = setup();
const args = [join(root, "test/cluster/keep.ts"), ...process.argv.slice(2)];
const cluster = spawn(node, args, { cwd: root, stdio: "inherit", env: environment(node) });

// A terminal sends Ctrl-C to both processes; otherwise it is forwarded. A second stop has no effect.
process.on("SIGINT", () => cluster.kill("SIGINT"));
process.on("SIGTERM", () => cluster.kill("SIGTERM"));
cluster.on("exit", (code, signal) => process.exit(signal === null ? (code ?? 3) : 3));
