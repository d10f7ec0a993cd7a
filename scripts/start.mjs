// `npm start`: usher on the embedded example cluster.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { environment, root, setup } from "./setup.mjs";

const node = setup();
const args = [
  join(root, "src/cli/main.ts"),
  "serve",
  "--source",
  "examples/cluster",
  ...process.argv.slice(2),
];
const usher = spawn(node, args, { cwd: root, stdio: ["inherit", "pipe", "inherit"], env: environment(node) });

// The first line that usher prints says that it is ready; then there is something to try.
let ready = false;
createInterface({ input: usher.stdout }).on("line", (line) => {
  console.log(line);
  if (ready || args.includes("json")) return;
  ready = true;
  console.log(`
Try, in another terminal:
  bin/usher review examples/pods/etcd.yaml --source examples/cluster           what would happen to this object
  bin/usher review examples/pods/etcd.yaml --source examples/cluster --trace   and why
  edit examples/cluster/policies.yaml                                          and watch this window

Ctrl-C stops it.`);
});

// A terminal sends Ctrl-C to both of us, and usher takes a second one for "at once": so it is passed on only where there is none.
process.on("SIGINT", () => process.stdin.isTTY || usher.kill("SIGINT"));
process.on("SIGTERM", () => usher.kill("SIGTERM"));
usher.on("exit", (code, signal) => process.exit(signal === null ? (code ?? 3) : 3));
