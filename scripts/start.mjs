// `npm start`: usher on the embedded example cluster, with its dashboard: two processes.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { environment, root, setup } from "./setup.mjs";

const node = setup();
const cluster = [
  ...["--source", "examples/cluster", "--source", "examples/every-module"],
  ...["--config", "examples/configurations/node-guard.yaml"],
];
const given = process.argv.slice(2);

function start(args) {
  const main = join(root, "src/cli/main.ts");
  const options = { cwd: root, stdio: ["inherit", "pipe", "inherit"], env: environment(node) };
  return spawn(node, [main, ...args], options);
}

const server = start(["serve", ...cluster, ...given]);
let dashboard;

// The first line that usher prints says that it is ready, and where; then there is something to try and to see.
let ready = false;
createInterface({ input: server.stdout }).on("line", (line) => {
  console.log(line);
  if (ready) return;
  ready = true;
  const json = given.includes("json");
  // The dashboard asks the server for its decisions by the port of health and metrics.
  const ops = json ? JSON.parse(line).ops : /health and metrics (http:\S+)/.exec(line)?.[1];
  const follow = ops === undefined ? [] : ["--decisions", ops];
  dashboard = start([
    "dashboard",
    ...cluster,
    ...follow,
    "--port",
    "0",
    "--quiet",
    "-o",
    json ? "json" : "text",
  ]);
  createInterface({ input: dashboard.stdout }).on("line", (text) => {
    console.log(text);
    if (!json)
      console.log(`
Open the dashboard in a browser: the address works once.
Try, in another terminal:
  bin/usher review examples/pods/etcd.yaml --source examples/cluster           what would happen to this object
  bin/usher review examples/pods/etcd.yaml --source examples/cluster --trace   and why
  edit examples/cluster/policies.yaml                                          and watch this window and the dashboard

Ctrl-C stops both.`);
  });
});

// A terminal sends Ctrl-C to all of us, and usher takes a second one for "at once": so it is passed on only where there is none.
const both = (signal) => {
  server.kill(signal);
  dashboard?.kill(signal);
};
process.on("SIGINT", () => process.stdin.isTTY || both("SIGINT"));
process.on("SIGTERM", () => both("SIGTERM"));
server.on("exit", (code, signal) => {
  dashboard?.kill("SIGTERM");
  process.exit(signal === null ? (code ?? 3) : 3);
});
