// What an edited policy costs to foresee: every stored pod judged by the old and the new policies, in processor time of this process.
import { foresee } from "../../src/core/foresight/foresee.ts";
import { World } from "../../src/core/foresight/world.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { assemblyWith, policyChange } from "../fixtures/assembly.ts";
import { NAMESPACE, policy } from "../fixtures/policies.ts";
import { count, range, time } from "../report/number.ts";
import { atMost, type Result } from "../report/result.ts";
import { spreadOf } from "../report/statistics.ts";
import type { Servers } from "../servers/servers.ts";

const PODS = 5_000;
const POLICIES = 100;
const NODES = 500;
const LIMIT_MS = 1_000;

export async function foresight(servers: Servers): Promise<Result> {
  servers.say(`foreseeing an edited policy for ${PODS} pods …`);
  const rounds = servers.quick ? 3 : 9;
  const decisions = spreadOf(await costs(rounds, false));
  const whole = spreadOf(await costs(rounds, true));
  return {
    title: `An edited policy of ${POLICIES}, foreseen for ${count(PODS)} stored pods, processor time`,
    rows: [
      {
        what: "usher diff: both decisions about every pod",
        figure: time(decisions.median),
        spread: range(decisions, time),
        target: atMost(LIMIT_MS, decisions.median / 1e3, " ms"),
      },
      {
        what: `usher what-if: also where each may run on ${NODES} nodes`,
        figure: time(whole.median),
        spread: range(whole, time),
      },
    ],
    figures: { pods: PODS, policies: POLICIES, nodes: NODES, microseconds: { decisions, whole } },
  };
}

/** µs of processor time, of each round but the first. */
async function costs(rounds: number, placements: boolean): Promise<number[]> {
  const world = worldOf();
  const after = world.with([policyChange(policy(1, "another"))]);
  const took: number[] = [];
  for (let i = 0; i <= rounds; i++) {
    const before = process.cpuUsage();
    const { workloads, looked } = await foresee(world.reconciled(), after.reconciled(), {
      now: 0,
      placements,
      priorityClasses: [],
    });
    const { user, system } = process.cpuUsage(before);
    if (workloads.length === 0 || looked.pods !== PODS) throw new Error("the edit changed nothing");
    if (i > 0) took.push(user + system);
  }
  return took;
}

function worldOf(): World {
  const assembly = assemblyWith(POLICIES);
  const nodes = Array.from({ length: NODES }, (_, i) => nodeOf(i));
  assembly.apply(
    nodes.map(([key, object]) => ({ resource: "nodes", namespace: "", name: key.slice(1), object })),
  );
  const tables = new Map([
    ["nodes", new Map(nodes)],
    ["pods", new Map(Array.from({ length: PODS }, (_, i) => podOf(i)))],
  ]);
  return new World(assembly, () => Promise.reject(new Error("the bench needs no facts")), tables);
}

function nodeOf(i: number): [string, JsonObject] {
  const name = `node-${i}`;
  const allocatable = { cpu: "64", memory: "256Gi", pods: "110" };
  const labels = { "kubernetes.io/hostname": name };
  return [
    `/${name}`,
    { apiVersion: "v1", kind: "Node", metadata: { name, labels }, status: { allocatable } },
  ];
}

/** Of as many templates as there are policies, each selected by one. */
function podOf(i: number): [string, JsonObject] {
  const name = `pod-${i}`;
  const labels = policy(i % POLICIES).spec.podSelector.matchLabels;
  const containers = [{ name: "main", image: "main:1", resources: { requests: { cpu: "10m" } } }];
  const spec = { nodeName: `node-${i % NODES}`, containers };
  return [
    `${NAMESPACE}/${name}`,
    { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: NAMESPACE, labels }, spec },
  ];
}
