// core/scheduling compared with the running scheduler: pods in sequence, each evaluated before it is created.
import fc from "fast-check";
import { expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { type Feasibility, feasibleNodes, prepareWorld } from "../../src/core/scheduling/scheduling.ts";
import type { ClusterAccess } from "../cluster/access/access.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";

const PODS = 200;
/** The pods are the same in each run. */
const SEED = 28;
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const ZONE = "topology.kubernetes.io/zone";
/** Excludes nodes of other tests in the shared cluster: NodeAffinity rejects them before the compared filters. */
const OWN = { key: "scheduling-test", value: "own" };
/** Filters that run after NodeAffinity: their reasons can only be about nodes of this test. */
const COMPARED =
  /^([0-9]+) (Insufficient .*|Too many pods|node\(s\) didn't (?:have free ports|match pod|satisfy existing).*)$/;

const labels = fc.record({ app: fc.constantFrom("a", "b"), rev: fc.constantFrom("1", "2") });
const selector = fc.constantFrom<Json>(
  { matchLabels: { app: "a" } },
  { matchExpressions: [{ key: "app", operator: "Exists" }] },
);
const term = fc.record(
  {
    topologyKey: fc.constantFrom(ZONE, "kubernetes.io/hostname"),
    labelSelector: selector,
    matchLabelKeys: fc.constant(["rev"]),
  },
  { requiredKeys: ["topologyKey", "labelSelector"] },
);
const constraint = fc.record(
  {
    topologyKey: fc.constantFrom(ZONE, "kubernetes.io/hostname"),
    maxSkew: fc.constantFrom(1, 2),
    whenUnsatisfiable: fc.constant("DoNotSchedule"),
    labelSelector: selector,
    minDomains: fc.constantFrom(2, 4),
    matchLabelKeys: fc.constant(["rev"]),
    nodeTaintsPolicy: fc.constantFrom("Honor", "Ignore"),
  },
  { requiredKeys: ["topologyKey", "maxSkew", "whenUnsatisfiable", "labelSelector"] },
);
const seldom = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(of, { freq: 1, nil: undefined });

const candidate = fc.record({
  labels,
  cpu: fc.constantFrom("0", "100m", "900m", "3"),
  port: seldom(fc.constantFrom(8080, 9090)),
  tolerates: fc.boolean(),
  zone: seldom(fc.constantFrom("za", "zb")),
  affinity: seldom(term),
  antiAffinity: seldom(term),
  spread: seldom(constraint),
});

type Candidate = typeof candidate extends fc.Arbitrary<infer T> ? T : never;

function podOf(name: string, namespace: string, parts: Candidate): JsonObject {
  const terms = (one: unknown): JsonObject => (one === undefined ? {} : { [REQUIRED]: [one as Json] });
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, labels: parts.labels },
    spec: {
      priority: 0,
      nodeSelector: { [OWN.key]: OWN.value, ...(parts.zone === undefined ? {} : { [ZONE]: parts.zone }) },
      tolerations: parts.tolerates ? [{ key: "dedicated", operator: "Exists" }] : [],
      affinity: { podAffinity: terms(parts.affinity), podAntiAffinity: terms(parts.antiAffinity) },
      topologySpreadConstraints: parts.spread === undefined ? [] : [parts.spread as JsonObject],
      containers: [
        {
          name: "main",
          image: "main",
          resources: { requests: { cpu: parts.cpu } },
          ports: parts.port === undefined ? [] : [{ containerPort: 80, hostPort: parts.port }],
        },
      ],
    },
  };
}

describeCluster("the scheduler", (cluster) => {
  const namespace = testNamespace(cluster);

  test(`decides on ${PODS} random pods like core/scheduling`, async () => {
    await createNodes(cluster());
    const differences: unknown[] = [];
    for (const [i, parts] of fc.sample(candidate, { numRuns: PODS, seed: SEED }).entries()) {
      const pod = podOf(`pod-${i}`, namespace(), parts);
      const judged = feasibleNodes(pod, prepareWorld(await worldOf(cluster())));
      const difference = differenceOf(judged, await scheduled(cluster(), pod));
      if (difference !== undefined) differences.push({ pod, ...difference });
    }
    expect(differences).toEqual([]);
  }, 600_000);
});

async function createNodes(cluster: ClusterAccess): Promise<void> {
  const dedicated = [{ key: "dedicated", value: "x", effect: "NoSchedule" }];
  for (const i of [0, 1, 2, 3]) {
    await cluster.createNode(`scheduling-${i}`, {
      labels: { [OWN.key]: OWN.value, [ZONE]: i % 2 === 0 ? "za" : "zb" },
      taints: i === 3 ? dedicated : [],
      capacity: { cpu: "4", memory: "8Gi", pods: i === 2 ? "8" : "30" },
    });
  }
}

async function worldOf(cluster: ClusterAccess) {
  const items = async (path: string): Promise<JsonObject[]> =>
    listAt(await cluster.call("GET", path), "items") as JsonObject[];
  const own = encodeURIComponent(`${OWN.key}=${OWN.value}`);
  const [nodes, pods, namespaces] = await Promise.all([
    items(`/api/v1/nodes?labelSelector=${own}`),
    items("/api/v1/pods"),
    items("/api/v1/namespaces"),
  ]);
  return { nodes, pods, namespaces, deviceClasses: [] };
}

interface Scheduled {
  readonly node: string | undefined;
  readonly message: string;
}

/** The node that the scheduler chose, or its reasons. A pending pod is deleted, so that it is not scheduled later. */
async function scheduled(cluster: ClusterAccess, pod: JsonObject): Promise<Scheduled> {
  const pods = `/api/v1/namespaces/${stringAt(pod, "metadata", "namespace")}/pods`;
  const path = `${pods}/${stringAt(pod, "metadata", "name")}`;
  await cluster.call("POST", pods, pod);
  const found = await eventually("the scheduler's decision", async () => {
    const now = await cluster.call("GET", path);
    const condition = listAt(now, "status", "conditions").find((one) => at(one, "type") === "PodScheduled");
    const node = stringAt(now, "spec", "nodeName");
    const message = stringAt(condition, "message") ?? "";
    return (node !== undefined || message !== "") && { node, message };
  });
  if (found.node === undefined) await cluster.call("DELETE", `${path}?gracePeriodSeconds=0`);
  return found;
}

function differenceOf(judged: Feasibility, { node, message }: Scheduled): JsonObject | undefined {
  const fitting = judged.groups.find(({ verdict }) => verdict.kind === "fits")?.nodes ?? [];
  if (judged.unknown > 0) return { summary: judged.summary, message };
  if (node !== undefined) return fitting.includes(node) ? undefined : { node, summary: judged.summary };
  const [ours, theirs] = [reasonsIn(judged.summary), reasonsIn(message)];
  return fitting.length === 0 && ours === theirs ? undefined : { ours, theirs, message };
}

/** The counted reasons of compared filters, in one string. */
function reasonsIn(message: string): string {
  const [first = ""] = message.split(" preemption: ");
  const reasons = first
    .slice(first.indexOf(": ") + 2)
    .replace(/\.\s*$/, "")
    .split(", ");
  return reasons
    .filter((reason) => COMPARED.test(reason))
    .sort()
    .join(", ");
}
