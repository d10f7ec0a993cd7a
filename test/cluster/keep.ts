// `npm run cluster`: a control plane for interactive use, until Ctrl-C.
import { startCluster } from "./cluster.ts";
import { runUsherForReal } from "./run-usher.ts";

const started = Date.now();
process.stdout.write("Starting a control plane on this machine …\n");
const cluster = await startCluster();

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  process.stdout.write("\nStopping …\n");
  await cluster.stop();
  process.exit(0);
}
process.on("SIGINT", stop);
process.on("SIGTERM", stop);

for (const [name, zone] of [
  ["node-1", "a"],
  ["node-2", "a"],
  ["node-3", "b"],
] as const) {
  await cluster.createNode(name, { labels: { "topology.kubernetes.io/zone": zone } });
}

const { kubectl, folder } = cluster.info;
const install = await runUsherForReal(cluster);
process.stdout.write(`Ready after ${((Date.now() - started) / 1000).toFixed(1)} s: three nodes, played by kwok.

  export KUBECONFIG=${await cluster.kubeconfig()}
  alias kubectl=${kubectl}

Try, in another terminal, after these two lines:
  kubectl get nodes --show-labels
  kubectl create deployment web --image=web --replicas=3
  kubectl get pods -o wide                  scheduled by the real scheduler; kwok only plays that they run
  kubectl auth can-i --list --as=someone    and what a person without rights may do
  bin/${install.padEnd(38)} its pods run for real, as processes on this machine

Logs of every part and the audit log: ${folder}
Pods with the label usher.dev/run=true run for real, too; of all others kwok only plays that they run.
Ctrl-C stops it and removes everything.
`);
// The components run as separate processes; this keeps the process alive.
setInterval(() => undefined, 2 ** 30);
