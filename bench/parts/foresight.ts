// What an edited policy costs to foresee: every stored pod judged by the old and the new policies, in processor time of this process; and
// what the warnings about a written policy cost other reviews of the server.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { foresee } from "../../src/core/foresight/foresee.ts";
import { World } from "../../src/core/foresight/world.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { assemblyWith, policyChange } from "../fixtures/assembly.ts";
import { NAMESPACE, policy } from "../fixtures/policies.ts";
import { count, range, ratio, time } from "../report/number.ts";
import { atMost, type Result } from "../report/result.ts";
import { quantile, spreadOf } from "../report/statistics.ts";
import { startServer } from "../servers/child-process.ts";
import { type Served, type Servers, servedAs } from "../servers/servers.ts";
import { innocent, sender } from "./fairness.ts";

const PODS = 5_000;
const POLICIES = 100;
const NODES = 500;
const LIMIT_MS = 1_000;
/** A second for the comparison, and the rest of the review. */
const LONGEST_WRITE_MS = 1_100;
/** The p99 of other reviews while policies are written, for the usual. */
const MOST_TIMES = 1.1;
const WRITE_EVERY_MS = 5_000;

export async function foresight(servers: Servers): Promise<Result> {
  servers.say(`foreseeing an edited policy for ${PODS} pods …`);
  const rounds = servers.quick ? 3 : 9;
  const decisions = spreadOf(await costs(rounds, false));
  const whole = spreadOf(await costs(rounds, true));
  const written = await besidePolicies(servers);
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
      {
        what: `a policy written on a cluster of ${count(PODS)} pods: until the response with its warnings`,
        figure: time(1_000 * quantile(written.policies, 0.5)),
        target: atMost(LONGEST_WRITE_MS, quantile(written.policies, 0.5), " ms"),
      },
      {
        what: `p99 of other reviews while a policy is written every ${WRITE_EVERY_MS / 1_000} s, for the usual`,
        figure: ratio(written.p99.beside / written.p99.usual),
        detail: `${time(1_000 * written.p99.beside)} for ${time(1_000 * written.p99.usual)}; the longest ${time(1_000 * written.longest)}`,
        target: atMost(MOST_TIMES, written.p99.beside / written.p99.usual),
      },
    ],
    figures: { pods: PODS, policies: POLICIES, nodes: NODES, microseconds: { decisions, whole }, written },
  };
}

interface Written {
  /** Milliseconds until the response to each written policy. */
  readonly policies: readonly number[];
  /** Milliseconds of other reviews: without, and beside, written policies. */
  readonly p99: { readonly usual: number; readonly beside: number };
  readonly longest: number;
}

/** Other reviews of the server, with and without policies that are written and foreseen. */
async function besidePolicies(servers: Servers): Promise<Written> {
  const program = join(import.meta.dirname, "..", "servers", "preview-server.ts");
  const child = await startServer(process.execPath, [program, String(PODS)]);
  const server = servedAs(servers.scratch, "preview", child);
  try {
    servers.say(`writing policies beside other reviews, on a cluster of ${PODS} pods …`);
    const seconds = servers.quick ? 5 : 30;
    await innocent(server, 3);
    const usual = await innocent(server, seconds);
    const over = new AbortController();
    const writing = writePolicies(server, over.signal);
    const beside = await innocent(server, seconds);
    over.abort();
    return {
      policies: await writing,
      p99: { usual: quantile(usual, 0.99), beside: quantile(beside, 0.99) },
      longest: beside.at(-1) ?? 0,
    };
  } finally {
    await server.stop();
  }
}

async function writePolicies(server: Served, signal: AbortSignal): Promise<number[]> {
  const send = sender(server);
  const took: number[] = [];
  for (let i = 0; !signal.aborted; i++) {
    const started = performance.now();
    took.push(await send("validate", policyReview(policy(i % POLICIES, "another"), policy(i % POLICIES))));
    await sleep(Math.max(0, started + WRITE_EVERY_MS - performance.now()));
  }
  return took.sort((a, b) => a - b);
}

function policyReview(object: ReturnType<typeof policy>, oldObject: ReturnType<typeof policy>): string {
  const type = { group: "kupid.gardener.cloud", version: "v1alpha1" };
  return JSON.stringify({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "5f0c7d1e-93ab-4c2d-8e6f-000000000001",
      kind: { ...type, kind: object.kind },
      resource: { ...type, resource: "clusterpodschedulingpolicies" },
      name: object.metadata.name,
      operation: "UPDATE",
      userInfo: { username: "kubernetes-admin", groups: ["system:masters"] },
      object,
      oldObject,
      dryRun: true,
    },
  });
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

/** As many templates as policies, each selected by one. */
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
