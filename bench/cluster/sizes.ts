// The needs of one replica in clusters of three sizes, run from the image's bundle: the basis of its requests and
// limits, and the reviews that it answers. The watchdog is measured too.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bundle } from "../../scripts/bundle.mjs";
import { type Cluster, startCluster } from "../../test/cluster/cluster.ts";
import { NAMESPACE_OBJECT } from "../fixtures/policies.ts";
import { reviews } from "../fixtures/reviews.ts";
import { type Generator, loadGenerator } from "../load/generator.ts";
import { CONNECTIONS, PATH } from "../load/rounds.ts";
import { count, mebibytes, time } from "../report/number.ts";
import { atMost, type Result, type Row } from "../report/result.ts";
import { startServer } from "../servers/child-process.ts";
import { processorTime } from "../servers/processor-time.ts";
import { servedAs } from "../servers/servers.ts";
import type { ClusterServers } from "./cluster-servers.ts";
import type { Beating } from "./heartbeat-worker.ts";
import { inClusterEnvironment } from "./in-cluster-environment.ts";
import { installKinds } from "./install.ts";
import { grow, PER_NODE } from "./sized-cluster.ts";
import { startWorker, type Worker } from "./worker-process.ts";

const FULL = { nodes: [50, 500, 5_000], seconds: 30, loadSeconds: 10 };
const QUICK = { nodes: [50, 500], seconds: 10, loadSeconds: 3 };

/** Requests and limits of the Deployments, in MiB. */
const SET = { request: 192, limit: 512, watchdogRequest: 96, watchdogLimit: 160 };

/** A kubelet writes the status of a node that did not change every five minutes. */
const HEARTBEAT_SECONDS = 300;

interface Size {
  readonly nodes: number;
  /** The leader: bytes when ready, at rest and at most; share of a core with the heartbeats of all nodes; seconds of a core until ready. */
  readonly ready: number;
  readonly rest: number;
  readonly peak: number;
  readonly cores: number;
  readonly startSeconds: number;
  /** Another replica under full load: reviews per second, µs of CPU time for each, maximum bytes. */
  readonly perSecond: number;
  readonly review: number;
  readonly loadedPeak: number;
}

export async function sizes(servers: ClusterServers): Promise<Result> {
  const { nodes: steps, seconds, loadSeconds } = servers.quick ? QUICK : FULL;
  const generator = await loadGenerator();
  const program = join(servers.scratch, "image");
  await bundle(program);
  await using cluster = await startCluster({
    without: ["kube-controller-manager", "kube-scheduler", "kwok"],
    // Without controllers pods have no service account.
    flags: { "kube-apiserver": ["--disable-admission-plugins=ServiceAccount"] },
  });
  await installKinds(cluster);
  await cluster.call("POST", "/api/v1/namespaces", NAMESPACE_OBJECT);
  await using kubelets = startWorker<Beating, number>(
    join(import.meta.dirname, "heartbeat-worker.ts"),
    cluster,
  );
  const found: Size[] = [];
  let filled = 0;
  for (const nodes of steps) {
    servers.say(`filling the cluster up to ${count(nodes)} nodes and ${count(nodes * PER_NODE.pods)} pods …`);
    await grow(cluster, filled, nodes);
    filled = nodes;
    servers.say("measuring the leader, and a replica under load …");
    const bin = join(program, "usher.mjs");
    const leader = await leading(servers, cluster, bin, kubelets, nodes, seconds);
    found.push({ nodes, ...leader, ...(await loaded(servers, cluster, bin, generator, nodes, loadSeconds)) });
  }
  const watchdog = await watching(cluster, join(program, "usher.mjs"), seconds);
  return {
    title: `One replica by the size of its cluster: for each node ${PER_NODE.pods} pods, ${PER_NODE.deployments} Deployment, ${PER_NODE.namespaces} namespaces and ${PER_NODE.policies} policies`,
    rows: [...found.flatMap(rowsOf), ...watchdogRows(watchdog, steps.at(-1) ?? 0)],
    figures: { perNode: PER_NODE, sizes: found, watchdog },
  };
}

/** As the image and the Deployment have it. */
const ENVIRONMENT = ["-u", "KUBECONFIG", "MALLOC_ARENA_MAX=2"];
const FLAGS = ["--max-semi-space-size=8", "--expose-gc"];
const PORTS = ["--port", "0", "--ops-port", "0", "--drain-seconds", "0", "-o", "json"];

/** As a pod of the Deployment, which leads because there is no other. */
async function leading(
  servers: ClusterServers,
  cluster: Cluster,
  bin: string,
  kubelets: Worker<Beating, number>,
  nodes: number,
  seconds: number,
): Promise<Pick<Size, "ready" | "rest" | "peak" | "cores" | "startSeconds">> {
  const variables = await inClusterEnvironment(cluster, servers.scratch);
  const child = await startServer("env", [
    ...ENVIRONMENT,
    ...variables,
    process.execPath,
    ...FLAGS,
    bin,
    "serve",
    ...PORTS,
  ]);
  try {
    const startSeconds = (processorTime(child.pid) ?? Number.NaN) / 1e9;
    const ready = memoryOf(child.pid).resident;
    const before = processorTime(child.pid) ?? Number.NaN;
    const started = performance.now();
    await kubelets.ask({ perSecond: nodes / HEARTBEAT_SECONDS, seconds, nodes });
    const spent = ((processorTime(child.pid) ?? Number.NaN) - before) / 1e6;
    const cores = spent / (performance.now() - started);
    const { resident: rest, peak } = memoryOf(child.pid);
    return { ready, rest, peak, cores, startSeconds };
  } finally {
    await child.stop();
  }
}

/** By a kubeconfig, with its own certificate, so that the load can call it as API servers do. */
async function loaded(
  servers: ClusterServers,
  cluster: Cluster,
  bin: string,
  generator: Generator,
  nodes: number,
  seconds: number,
): Promise<Pick<Size, "perSecond" | "review" | "loadedPeak">> {
  const where = ["--kubeconfig", await cluster.kubeconfig()];
  const child = await startServer("env", [
    ...ENVIRONMENT,
    process.execPath,
    ...FLAGS,
    bin,
    "serve",
    ...where,
    ...PORTS,
  ]);
  try {
    const { ready, ca, pid } = servedAs(servers.scratch, `usher-${nodes}`, child);
    const attack = () =>
      generator.attack({
        url: `${ready.webhook}${PATH}`,
        ca,
        bodies: reviews("wanted", nodes * PER_NODE.policies),
        seconds,
        connections: CONNECTIONS,
        scratch: servers.scratch,
      });
    await attack();
    const before = processorTime(pid) ?? Number.NaN;
    const { requests, throughput } = await attack();
    const review = ((processorTime(pid) ?? Number.NaN) - before) / 1e3 / requests;
    return { perSecond: throughput, review, loadedPeak: memoryOf(pid).peak };
  } finally {
    await child.stop();
  }
}

/** The watchdog, with the flags of its Deployment. */
async function watching(cluster: Cluster, bin: string, seconds: number) {
  const flags = ["--max-semi-space-size=1", "--max-old-space-size=32"];
  const where = ["--kubeconfig", await cluster.kubeconfig(), "--ops-port", "0"];
  const child = spawn("env", [...ENVIRONMENT, process.execPath, ...flags, bin, "watchdog", ...where], {
    stdio: "ignore",
  });
  const pid = child.pid ?? 0;
  try {
    await sleep(STARTED_WITHIN_MS);
    const before = processorTime(pid) ?? Number.NaN;
    await sleep(seconds * 1_000);
    const cores = ((processorTime(pid) ?? Number.NaN) - before) / 1e9 / seconds;
    return { ...memoryOf(pid), cores };
  } finally {
    child.kill();
  }
}

/** By then it has started. */
const STARTED_WITHIN_MS = 5_000;

/** In bytes. */
function memoryOf(pid: number): { readonly resident: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const of = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) * 1_024;
  return { resident: of("VmRSS"), peak: of("VmHWM") };
}

const millicores = (cores: number) => `${(cores * 1_000).toFixed(0)} m`;

function rowsOf({
  nodes,
  ready,
  rest,
  peak,
  cores,
  startSeconds,
  perSecond,
  review,
  loadedPeak,
}: Size): Row[] {
  const what = (text: string) => `${count(nodes)} nodes: ${text}`;
  const mib = (bytes: number) => bytes / 1_048_576;
  return [
    {
      what: what("memory of the leader"),
      figure: mebibytes(rest),
      detail: `when ready ${mebibytes(ready)}`,
      target: atMost(SET.request, mib(rest), " MiB"),
    },
    {
      what: what("the same, at most, and of a replica under load"),
      figure: mebibytes(Math.max(peak, loadedPeak)),
      detail: `leader ${mebibytes(peak)}, under load ${mebibytes(loadedPeak)}`,
      target: atMost(SET.limit, mib(Math.max(peak, loadedPeak)), " MiB"),
    },
    {
      what: what("CPU of the leader, with the heartbeats of all nodes"),
      figure: millicores(cores),
      detail: `${startSeconds.toFixed(1)} s of a core until ready`,
    },
    {
      what: what("reviews of pods a second, one replica"),
      figure: count(perSecond),
      detail: `${time(review)} of a core each: ${count(1e6 / review)} with a core of its own`,
    },
  ];
}

function watchdogRows(
  { resident, peak, cores }: { readonly resident: number; readonly peak: number; readonly cores: number },
  nodes: number,
): Row[] {
  return [
    {
      what: `${count(nodes)} nodes: memory of the watchdog`,
      figure: mebibytes(resident),
      detail: `${millicores(cores)} of CPU`,
      target: atMost(SET.watchdogRequest, resident / 1_048_576, " MiB"),
    },
    {
      what: `${count(nodes)} nodes: the same, at most`,
      figure: mebibytes(peak),
      target: atMost(SET.watchdogLimit, peak / 1_048_576, " MiB"),
    },
  ];
}
