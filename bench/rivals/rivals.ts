// `npm run bench -- --rivals`: usher beside what people would use in its place, through one API server.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type JsonObject, listAt } from "../../src/core/json.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { type Cluster, startCluster } from "../../test/cluster/cluster.ts";
import { inParallel } from "../cluster/parallel.ts";
import { startWorker, type Worker } from "../cluster/worker-process.ts";
import { count, time } from "../report/number.ts";
import type { Result, Row } from "../report/result.ts";
import { quantile, spreadOf } from "../report/statistics.ts";
import type { Servers } from "../servers/servers.ts";
import {
  CONTENDERS,
  type ContenderName,
  POLICIES,
  podObject,
  podsPath,
  poolOf,
  SELECTED,
} from "./contenders.ts";
import type { Created, Creations } from "./creations-worker.ts";
import { type Contender, createNamespaces, STARTS, usedByApiServer } from "./start.ts";

const FULL = { rounds: 3, sizes: [1, 10, 100, 1_000], pods: 600, slowPods: 300, warmPods: 300 };
const QUICK = { rounds: 1, sizes: [1, 100], pods: 300, slowPods: 150, warmPods: 150 };
/** Pods a second where latency is measured; all contenders can do this many. */
const RATE = 30;
const WRITERS = 8;
const IN_FORCE_WITHIN_MS = 300_000;
const REST_MS = 1_500;

interface Sample {
  readonly round: number;
  readonly by: ContenderName;
  readonly policies: number;
  /** CPU time for each pod at the limit, in µs. */
  readonly apiServer: number;
  readonly own: number;
  readonly perSecond: number;
  /** ms */
  readonly atLimit: Latency;
  readonly atRate: Latency;
  /** Bytes. */
  readonly memory: { readonly apiServer: number; readonly own: number };
  /** ms from the write of another pool until a new pod gets it. */
  readonly changeMs: number | undefined;
}

interface Latency {
  readonly p50: number;
  readonly p99: number;
}

export async function rivals(servers: Servers, only: readonly string[]): Promise<Result> {
  const names = CONTENDERS.filter((name) => only.length === 0 || only.includes(name));
  const { rounds, sizes, pods, slowPods, warmPods } = servers.quick ? QUICK : FULL;
  servers.say("starting a control plane, and all contenders on loopback; the first time they are built …");
  const scratch = mkdtempSync(join(tmpdir(), "usher-rivals-"));
  await using cluster = await startCluster();
  await createNamespaces(cluster, names);
  const contenders: Contender[] = [];
  const absent = new Map<ContenderName, string>();
  const samples: Sample[] = [];
  try {
    for (const name of names) {
      try {
        contenders.push(await STARTS[name](cluster, scratch));
      } catch (error) {
        absent.set(name, error instanceof Error ? error.message : String(error));
        servers.say(`${name} can't be measured: ${absent.get(name)}`);
      }
    }
    await using worker = startWorker<Creations, Created>(
      join(import.meta.dirname, "creations-worker.ts"),
      cluster,
    );
    for (let round = 1; round <= rounds; round++)
      for (const policies of sizes)
        for (const contender of round % 2 === 1 ? contenders : contenders.toReversed()) {
          const { name } = contender;
          if (absent.has(name) || (policies > 1 && POLICIES[name](0, "a").length === 0)) continue;
          servers.say(`round ${round} of ${rounds}: ${name}, ${count(policies)} policies …`);
          try {
            await writeAll(cluster, name, policies);
            await inForce(cluster, name, "a");
            await worker.ask({ by: name, pods: warmPods });
            samples.push(await measure(cluster, contender, worker, { round, policies, pods, slowPods }));
          } catch (error) {
            const why = error instanceof Error ? error.message : String(error);
            absent.set(name, `at ${count(policies)} policies: ${why}`);
            servers.say(`${name} is left out from here on: ${why}`);
          } finally {
            await removeAll(cluster, name, policies);
          }
        }
  } finally {
    for (const { stop } of contenders) await stop();
    rmSync(scratch, { recursive: true, force: true });
  }
  return resultOf(samples, absent, { rounds, sizes, pods });
}

async function measure(
  cluster: Cluster,
  contender: Contender,
  worker: Worker<Creations, Created>,
  { round, policies, pods, slowPods }: { round: number; policies: number; pods: number; slowPods: number },
): Promise<Sample> {
  const { name: by, used } = contender;
  const atRate = await worker.ask({ by, pods: slowPods, perSecond: RATE });
  await forget(cluster, by);
  const before = { apiServer: usedByApiServer(cluster), own: await used() };
  const atLimit = await worker.ask({ by, pods });
  const after = { apiServer: usedByApiServer(cluster), own: await used() };
  await forget(cluster, by);
  return {
    round,
    by,
    policies,
    apiServer: (after.apiServer.processor - before.apiServer.processor) / pods,
    own: (after.own.processor - before.own.processor) / pods,
    perSecond: atLimit.perSecond,
    atLimit: latencyOf(atLimit),
    atRate: latencyOf(atRate),
    memory: { apiServer: after.apiServer.memoryBytes, own: after.own.memoryBytes },
    changeMs: await changeTime(cluster, by),
  };
}

function latencyOf({ took }: Created): Latency {
  return { p50: quantile(took, 0.5), p99: quantile(took, 0.99) };
}

/** Deletes the pods, and waits until the API server has forgotten them. */
async function forget(cluster: Cluster, by: ContenderName): Promise<void> {
  const options = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
  await cluster.call("DELETE", podsPath(by), options);
  await eventually("the pods to be gone", async () => {
    return listAt(await cluster.call("GET", `${podsPath(by)}?limit=1`), "items").length === 0;
  });
  await sleep(REST_MS);
}

async function writeAll(cluster: Cluster, by: ContenderName, policies: number): Promise<void> {
  // The one that selects comes last: once it has an effect, all are known.
  await inParallel(policies - 1, WRITERS, async (i) => {
    for (const { path, object } of POLICIES[by](i + 1, "a")) await cluster.call("POST", path, object);
  });
  for (const { path, object } of POLICIES[by](SELECTED, "a")) await cluster.call("POST", path, object);
}

async function removeAll(cluster: Cluster, by: ContenderName, policies: number): Promise<void> {
  if (POLICIES[by](SELECTED, "a").length === 0) return;
  await inParallel(policies, WRITERS, async (i) => {
    for (const { path, object } of POLICIES[by](i, "a"))
      await cluster.request("DELETE", `${path}/${(object["metadata"] as { name: string }).name}`);
  });
  await eventually(
    "the policies to have no effect",
    async () => (await dryRun(cluster, by)) === undefined,
    IN_FORCE_WITHIN_MS,
  );
}

async function dryRun(cluster: Cluster, by: ContenderName): Promise<string | undefined> {
  const { status, body } = await cluster.request("POST", `${podsPath(by)}?dryRun=All`, podObject());
  return status === 201 ? poolOf(body as JsonObject) : `refused: ${JSON.stringify(body)}`;
}

/** Ten pods in a row get the pool. */
async function inForce(cluster: Cluster, by: ContenderName, pool: string): Promise<void> {
  const expected = by === "nothing" ? undefined : pool;
  let last: string | undefined;
  try {
    await eventually(
      `${by} to place pods`,
      async () => {
        for (let i = 0; i < 10; i++) {
          last = await dryRun(cluster, by);
          if (last !== expected) return false;
        }
        return true;
      },
      IN_FORCE_WITHIN_MS,
    );
  } catch (error) {
    throw new Error(
      `${error instanceof Error ? error.message : error}; the last pod: ${last ?? "not placed"}`,
    );
  }
}

async function changeTime(cluster: Cluster, by: ContenderName): Promise<number | undefined> {
  const [policy] = POLICIES[by](SELECTED, "b");
  if (policy === undefined) return undefined;
  const { path, object } = policy;
  const started = performance.now();
  const { status, body } = await cluster.client.request(
    "PATCH",
    `${path}/${(object["metadata"] as { name: string }).name}`,
    { spec: object["spec"] as JsonObject },
    undefined,
    { headers: { "content-type": "application/merge-patch+json" } },
  );
  if (status !== 200) throw new Error(`the policy can't be changed: ${status} ${JSON.stringify(body)}`);
  while ((await dryRun(cluster, by)) !== "b") {
    if (performance.now() - started > IN_FORCE_WITHIN_MS) throw new Error("a changed policy has no effect");
    await sleep(5);
  }
  return performance.now() - started;
}

function resultOf(
  samples: readonly Sample[],
  absent: ReadonlyMap<ContenderName, string>,
  { rounds, sizes, pods }: { rounds: number; sizes: readonly number[]; pods: number },
): Result {
  const rows: Row[] = [];
  for (const policies of sizes)
    for (const by of CONTENDERS) {
      const own = samples.filter((one) => one.by === by && one.policies === policies);
      if (own.length === 0) continue;
      const median = (value: (sample: Sample) => number) => spreadOf(own.map(value)).median;
      const total = spreadOf(own.map((one) => one.apiServer + one.own));
      const ms = (value: (sample: Sample) => number) => median(value).toFixed(1);
      const mib = (value: (sample: Sample) => number) => count(median(value) / 2 ** 20);
      const change = own.some(({ changeMs }) => changeMs !== undefined)
        ? `; a change after ${count(median(({ changeMs }) => changeMs ?? Number.NaN))} ms`
        : "";
      rows.push({
        what: `${by}, ${count(policies)} ${policies === 1 ? "policy" : "policies"}: CPU time per pod`,
        figure: time(total.median),
        spread: `${time(total.least)} to ${time(total.most)}`,
        detail: [
          `API server ${time(median(({ apiServer }) => apiServer))} + own ${time(median((one) => one.own))}`,
          `${count(median(({ perSecond }) => perSecond))}/s, p50 ${ms(({ atLimit }) => atLimit.p50)} p99 ${ms(({ atLimit }) => atLimit.p99)} ms`,
          `at ${RATE}/s p50 ${ms(({ atRate }) => atRate.p50)} p99 ${ms(({ atRate }) => atRate.p99)} ms`,
          `${mib(({ memory }) => memory.apiServer)} + ${mib(({ memory }) => memory.own)} MiB${change}`,
        ].join("; "),
      });
    }
  for (const [name, why] of absent)
    rows.push({ what: `${name} could not be measured`, figure: "-", detail: why.slice(0, 300) });
  return {
    title: `Pods that get a required node affinity term and a toleration, by usher and by others; one of N policies selects them; ${rounds} interleaved rounds of ${count(pods)} pods, all on loopback`,
    rows,
    figures: { rounds, sizes, pods, samples, absent: Object.fromEntries(absent) },
  };
}
