// core/scheduling beside kube-scheduler's own filters: the same cluster and the same pods, in one run.

import type { Json, JsonObject } from "../../src/core/json.ts";
import { feasibilityByClass, feasibleNodes, prepareWorld } from "../../src/core/scheduling/scheduling.ts";
import type { SchedulingWorld } from "../../src/core/scheduling/world.ts";
import { EMPTY_WORLD } from "../../test/builders/scheduling.ts";
import { ensureSchedulerOracle, oracleUnavailable } from "../../test/cluster/binaries.ts";
import { Oracle } from "../../test/scheduling/oracle.ts";
import { ratio } from "../report/number.ts";
import { atMost, type Result, type Row } from "../report/result.ts";
import type { Servers } from "../servers/servers.ts";

const NODES = 5_000;
const PLACED = 30_000;
const TEMPLATES = 500;
const PODS = 10_000;
/** 100 pods on all nodes are 500,000 verdicts. */
const JUDGED = 100;
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const ZONE = "topology.kubernetes.io/zone";

function node(i: number): JsonObject {
  const name = `node-${i}`;
  const labels = { "kubernetes.io/hostname": name, [ZONE]: `zone-${i % 3}`, pool: `pool-${i % 20}` };
  const taints = i % 10 === 0 ? [{ key: "dedicated", value: "edge", effect: "NoSchedule" }] : [];
  const allocatable = { cpu: "8", memory: "32Gi", pods: "110", "ephemeral-storage": "100Gi" };
  return { metadata: { name, labels }, spec: { taints }, status: { allocatable } };
}

/** Templates of five sorts: plain, with a selector, with affinity and a toleration, spread, and apart from their own. */
function spec(template: number): JsonObject {
  const selector = { matchLabels: { app: `app-${template}` } };
  const containers = [
    { name: "main", resources: { requests: { cpu: `${100 + (template % 7) * 100}m`, memory: "512Mi" } } },
  ];
  const pools = { key: "pool", operator: "In", values: [1, 2, 3].map((n) => `pool-${(template + n) % 20}`) };
  const sorts: readonly Readonly<Record<string, Json>>[] = [
    {},
    { nodeSelector: { pool: `pool-${template % 20}` } },
    {
      affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions: [pools] }] } } },
      tolerations: [{ key: "dedicated", operator: "Exists" }],
    },
    {
      topologySpreadConstraints: [
        { topologyKey: ZONE, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule", labelSelector: selector },
      ],
    },
    {
      affinity: {
        podAntiAffinity: { [REQUIRED]: [{ topologyKey: "kubernetes.io/hostname", labelSelector: selector }] },
      },
    },
  ];
  return { containers, ...sorts[template % sorts.length] };
}

function pod(i: number, more: JsonObject = {}): JsonObject {
  const template = i % TEMPLATES;
  const metadata = {
    name: `pod-${i}`,
    uid: `uid-${i}`,
    namespace: "default",
    labels: { app: `app-${template}` },
  };
  return { metadata, spec: { ...spec(template), ...more }, status: {} };
}

function cluster(): SchedulingWorld {
  return {
    ...EMPTY_WORLD,
    nodes: Array.from({ length: NODES }, (_, i) => node(i)),
    pods: Array.from({ length: PLACED }, (_, i) => pod(i, { nodeName: `node-${(i * 7) % NODES}` })),
    namespaces: [{ metadata: { name: "default" } }],
  };
}

function cpuSeconds(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

export async function scheduling(_servers: Servers): Promise<Result> {
  const world = cluster();
  const rows: Row[] = [];
  const first = performance.now();
  const prepared = prepareWorld(world);
  feasibleNodes(pod(0), prepared);
  const firstMs = performance.now() - first;
  const singles = Array.from({ length: 50 }, (_, i) => {
    const started = performance.now();
    feasibleNodes(pod(i), prepared);
    return performance.now() - started;
  }).sort((a, b) => a - b);
  const slowest = singles.at(-1) ?? Number.NaN;
  const all = Array.from({ length: PODS }, (_, i) => pod(PLACED + i));
  const started = performance.now();
  all.forEach(feasibilityByClass(prepareWorld(world)));
  const seconds = (performance.now() - started) / 1000;
  const judged = Array.from({ length: JUDGED }, (_, i) => pod(i));
  const own = cpuSeconds(() => {
    for (const one of judged) feasibleNodes(one, prepared);
  });
  rows.push(
    {
      what: "one pod on 5,000 nodes, slowest of 50",
      figure: `${slowest.toFixed(1)} ms`,
      target: atMost(100, slowest, " ms"),
    },
    { what: "the first pod, with 30,000 placed pods to read", figure: `${firstMs.toFixed(0)} ms` },
    {
      what: "10,000 pods of 500 templates",
      figure: `${seconds.toFixed(2)} s`,
      target: atMost(10, seconds, " s"),
    },
  );
  const theirs = await oracleSeconds(judged, world);
  const beside =
    theirs === undefined
      ? "kube-scheduler's filters can't be built here"
      : `${theirs.toFixed(2)} s in Go, ${ratio(own / theirs)}`;
  rows.push({ what: "CPU time of 500,000 verdicts", figure: `${own.toFixed(2)} s`, detail: beside });
  const figures = { firstMs, slowestMs: slowest, seconds, cpuSeconds: own, oracleCpuSeconds: theirs ?? null };
  return { title: "scheduling: 5,000 nodes with 30,000 pods", rows, figures };
}

/** The same verdicts by kube-scheduler's own filters; `undefined` where they can't be built. */
async function oracleSeconds(
  judged: readonly JsonObject[],
  world: SchedulingWorld,
): Promise<number | undefined> {
  if (oracleUnavailable([""]) !== "") return undefined;
  const oracle = new Oracle(await ensureSchedulerOracle());
  try {
    return (await oracle.judge(judged, world, true)).cpuSeconds;
  } finally {
    oracle.close();
  }
}
