// The process that bench/parts/dashboard.ts measures: the state of a dashboard, filled as an informer cache fills it.
import { WorldJudging } from "../../src/cli/dashboard/judging.ts";
import { assembleModules } from "../../src/cli/source/source.ts";
import type { JsonObject } from "../../src/core/json.ts";
import type { Change } from "../../src/core/view/view.ts";
import { DashboardState } from "../../src/dashboard/state.ts";
import { modules } from "../../src/modules/all.ts";
import type { DashboardFigures } from "./dashboard.ts";

const [nodes = 0, pods = 0] = process.argv.slice(2).map(Number);
const TEMPLATES = 5_000;
const NAMESPACES = 200;

const state = new DashboardState(
  assembleModules(modules, { featureGates: "OpenShiftNodeSchedulingPolicy=true" }),
  {
    version: "bench",
    name: "bench",
    live: true,
    now: Date.now,
    problems: () => [],
  },
);

const change = (resource: string, object: JsonObject): Change => {
  const { name, namespace = "" } = object["metadata"] as { name: string; namespace?: string };
  return { resource, namespace, name, object };
};

function nodeOf(i: number, ready = "True"): JsonObject {
  const labels = {
    "kubernetes.io/hostname": `node-${i}`,
    "kubernetes.io/os": "linux",
    pool: `pool-${i % 20}`,
    "topology.kubernetes.io/zone": `zone-${i % 3}`,
    ...(i % 500 === 0 ? { "node-role.kubernetes.io/control-plane": "" } : {}),
  };
  const status = {
    allocatable: { cpu: "64", memory: "256Gi", pods: "110" },
    conditions: [{ type: "Ready", status: ready, lastHeartbeatTime: "2026-01-01T00:00:00Z" }],
  };
  return { apiVersion: "v1", kind: "Node", metadata: { name: `node-${i}`, labels }, spec: {}, status };
}

/** As an API server stores it: with a token's volume, defaults and a status. */
function podOf(i: number, phase = "Running"): JsonObject {
  const template = i % TEMPLATES;
  const token = `kube-api-access-${i.toString(36).padStart(5, "0").slice(-5)}`;
  const container = (name: string) => ({
    name,
    image: `registry.example.com/team-${template}/${name}:1.2.3`,
    env: Array.from({ length: 10 }, (_, j) => ({ name: `SETTING_${j}`, value: `value ${j} of ${template}` })),
    resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
    volumeMounts: [
      { name: token, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount", readOnly: true },
    ],
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    imagePullPolicy: "IfNotPresent",
  });
  const provenance = JSON.stringify({
    placement: [
      { policy: `ClusterPodSchedulingPolicy/policy-${template % 50}`, set: ["/spec/nodeSelector/pool"] },
    ],
  });
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `app-${template}-${i}`,
      namespace: `namespace-${template % NAMESPACES}`,
      uid: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`,
      labels: { app: `app-${template}`, "pod-template-hash": `hash${template}`, group: `g${template % 50}` },
      annotations: { "usher.dev/provenance": provenance },
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "ReplicaSet",
          name: `app-${template}-hash`,
          uid: `rs-${template}`,
          controller: true,
        },
      ],
    },
    spec: {
      nodeName: `node-${i % nodes}`,
      nodeSelector: { pool: `pool-${(i % nodes) % 20}` },
      serviceAccountName: "app",
      containers: [container("main"), container("proxy")],
      volumes: [{ name: token, projected: { sources: [] } }],
      tolerations: [
        {
          key: "node.kubernetes.io/not-ready",
          operator: "Exists",
          effect: "NoExecute",
          tolerationSeconds: 300,
        },
      ],
      schedulerName: "default-scheduler",
      restartPolicy: "Always",
    },
    status: { phase, podIP: "10.0.0.1", conditions: [{ type: "Ready", status: "True" }] },
  };
}

const policyOf = (i: number): JsonObject => ({
  apiVersion: "kupid.gardener.cloud/v1alpha1",
  kind: "ClusterPodSchedulingPolicy",
  metadata: { name: `policy-${i}` },
  spec: {
    namespaceSelector: {},
    podSelector: { matchLabels: { group: `g${i}` } },
    nodeSelector: { pool: `pool-${i % 20}` },
  },
});

function apply(changes: readonly Change[]): void {
  for (let from = 0; from < changes.length; from += 50) state.assembly.apply(changes.slice(from, from + 50));
}

/** Milliseconds of processor time: other work on the machine does not count. */
async function timed(work: () => unknown): Promise<number> {
  const started = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(started);
  return (user + system) / 1_000;
}

apply(Array.from({ length: nodes }, (_, i) => change("nodes", nodeOf(i))));
apply(
  Array.from({ length: NAMESPACES }, (_, i) =>
    change("namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: `namespace-${i}` } }),
  ),
);
apply(
  Array.from({ length: 50 }, (_, i) =>
    change("clusterpodschedulingpolicies.kupid.gardener.cloud", policyOf(i)),
  ),
);
for (let from = 0; from < pods; from += 500)
  apply(Array.from({ length: Math.min(500, pods - from) }, (_, i) => change("pods", podOf(from + i))));

const first = await timed(() => state.map({}));
const others: number[] = [];
for (const { name } of state.lenses.slice(1)) others.push(await timed(() => state.map({ lens: name })));
const again = await timed(() => state.map({ group: "zone" }));
const node = await timed(() => state.node("node-7"));
const search = await timed(() => state.search("app-4711"));

/** A second as a busy cluster has it: each change is a pod that ends and is replaced. */
let at = 0;
const before = process.cpuUsage();
const rounds = 5;
let delta = 0;
for (let second = 0; second < rounds; second++)
  for (let quarter = 0; quarter < 4; quarter++) {
    const since = state.revision;
    for (let i = 0; i < 75; i++) {
      at = (at + 7) % pods;
      state.assembly.apply([change("pods", podOf(at, at % 2 === 0 ? "Pending" : "Succeeded"))]);
    }
    const took = await timed(() => state.map({ since }));
    delta = Math.max(delta, took);
  }
const used = process.cpuUsage(before);
const changes = (used.user + used.system) / 1e6 / rounds;

const source = {
  assembly: state.assembly,
  ready: true,
  fetch: async (needs: readonly unknown[]) => needs.map(() => ({ absent: "NotFound" as const })),
  commit: async () => "done" as const,
  stop: async () => undefined,
};
const judging = new WorldJudging(state, source as never, { command: "usher", flags: "" });
const ask = () => judging.explain({ kind: "Pod", namespace: "namespace-7", name: "app-7-7" });
const explain = await timed(ask);
const explainAgain = await timed(ask);

const figures: DashboardFigures = {
  nodes,
  pods,
  first,
  lenses: Math.max(...others),
  again,
  delta,
  node,
  search,
  explain,
  explainAgain,
  changes,
  megabytes: process.memoryUsage().rss / 2 ** 20,
};
if (process.send === undefined)
  process.stdout.write(`${JSON.stringify(figures, null, 1)}\n${JSON.stringify(others)}\n`);
else process.send(figures);
