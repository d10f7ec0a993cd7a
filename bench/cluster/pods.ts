// Pods through the real API server, with usher at its door and without.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { listAt } from "../../src/core/json.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { type Cluster, startCluster } from "../../test/cluster/cluster.ts";
import { count, range, ratio, time } from "../report/number.ts";
import { atLeast, atMost, type Result } from "../report/result.ts";
import { spreadOf } from "../report/statistics.ts";
import { processorTime } from "../servers/processor-time.ts";
import type { Servers } from "../servers/servers.ts";
import { registerBareWebhook } from "./bare-webhook.ts";
import { keepApart } from "./cores.ts";
import { installForPods } from "./install.ts";
import { CREATORS } from "./parallel.ts";
import { ARMS, type Arm, POLICIES, podsPath } from "./pod.ts";
import type { Creation } from "./pod-creation-worker.ts";
import { workOf } from "./replicas.ts";
import { startWorker, type Worker } from "./worker-process.ts";

const PROMISED = { ratio: 0.9, calls: 1 };
const FULL = { rounds: 15, pods: 800, warmPods: 2_000 };
const QUICK = { rounds: 5, pods: 400, warmPods: 800 };
/** Until the replicas have reported the last round and the API server has forgotten its pods. */
const REST_MS = 1_000;

/** Processor time for each pod, in µs. */
interface Spent {
  readonly apiServer: number;
  readonly etcd: number;
  readonly usher: number;
  readonly creators: number;
  /** The harness: its proxy, through which the API server reaches usher. */
  readonly proxy: number;
}

interface Sample extends Spent {
  readonly round: number;
  readonly arm: Arm["name"];
  readonly perSecond: number;
  /** Calls that usher had for each pod. */
  readonly calls: number;
}

export async function pods(servers: Servers): Promise<Result> {
  servers.say("starting a control plane and installing usher …");
  await using cluster = await startCluster();
  using apart = keepApart(cluster);
  await installForPods(cluster);
  const bare = await registerBareWebhook(cluster);
  try {
    await using creators = startWorker<Creation, number>(
      join(import.meta.dirname, "pod-creation-worker.ts"),
      cluster,
    );
    const { rounds, pods: most, warmPods } = servers.quick ? QUICK : FULL;
    servers.say(`warming up with ${warmPods} pods each …`);
    for (const arm of ARMS) await measure(cluster, creators, arm, warmPods, 0);
    const samples: Sample[] = [];
    for (let round = 1; round <= rounds; round++) {
      servers.say(`round ${round} of ${rounds}, ${most} pods each …`);
      for (const arm of round % 2 === 1 ? ARMS : ARMS.toReversed())
        samples.push(await measure(cluster, creators, arm, most, round));
    }
    return resultOf(samples, rounds, most, apart.says);
  } finally {
    await bare.stop();
  }
}

/** Creates pods and deletes them again. */
async function measure(
  cluster: Cluster,
  creators: Worker<Creation, number>,
  arm: Arm,
  most: number,
  round: number,
): Promise<Sample> {
  const before = await spentIn(cluster, creators);
  const perSecond = await creators.ask({ arm, pods: most });
  const after = await spentIn(cluster, creators);
  const options = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
  await cluster.call("DELETE", podsPath(arm), options);
  await eventually("the pods to be gone", async () => {
    return listAt(await cluster.call("GET", `${podsPath(arm)}?limit=1`), "items").length === 0;
  });
  await sleep(REST_MS);
  const each = (one: keyof typeof after) => (after[one] - before[one]) / most;
  return {
    round,
    arm: arm.name,
    perSecond,
    calls: each("calls"),
    apiServer: each("apiServer"),
    etcd: each("etcd"),
    usher: each("usher"),
    creators: each("creators"),
    proxy: each("proxy"),
  };
}

async function spentIn(cluster: Cluster, { pid }: Worker<Creation, number>) {
  const of = (process: number | undefined) => (processorTime(process ?? 0) ?? Number.NaN) / 1e3;
  const { processor, reviews } = await workOf(cluster);
  return {
    calls: reviews,
    usher: processor,
    apiServer: of(cluster.component("kube-apiserver").pid),
    etcd: of(cluster.component("etcd").pid),
    creators: of(pid),
    proxy: of(process.pid),
  };
}

function resultOf(samples: readonly Sample[], rounds: number, most: number, cores: string): Result {
  const of = (arm: Arm["name"], one: Exclude<keyof Sample, "round" | "arm">) =>
    samples.filter((sample) => sample.arm === arm).map((sample) => sample[one]);
  const median = (arm: Arm["name"], one: keyof Spent | "perSecond") => spreadOf(of(arm, one)).median;
  const rate = (arm: Arm["name"]) => `${arm} ${count(median(arm, "perSecond"))}/s`;
  const compare = (one: Arm["name"], other: Arm["name"]) => {
    const others = of(other, "perSecond");
    const found = spreadOf(of(one, "perSecond").map((value, i) => value / (others[i] ?? Number.NaN)));
    return {
      found,
      row: {
        figure: ratio(found.median),
        spread: range(found, ratio),
        detail: `${rate(one)}, ${rate(other)}`,
      },
    };
  };
  const usher = compare("usher", "without");
  const bare = compare("bare", "without");
  const own = compare("usher", "bare");
  const calls = spreadOf(of("usher", "calls"));
  const spent = (what: string, one: keyof Spent) => ({
    what: `CPU time per pod: ${what}`,
    figure: time(median("usher", one)),
    detail: `with the bare webhook ${time(median("bare", one))}, without ${time(median("without", one))}`,
  });
  return {
    title: `Pods created through kube-apiserver as fast as it takes them: ${CREATORS} creators in a process of their own, ${rounds} rounds of ${count(most)} pods, two replicas from the source; ${cores}`,
    rows: [
      {
        what: "pods a second, usher for no webhook",
        ...usher.row,
        target: atLeast(PROMISED.ratio, usher.found.median),
      },
      { what: "the same, a bare webhook with a constant patch, past the harness's proxy", ...bare.row },
      { what: "usher for the bare webhook", ...own.row },
      {
        what: "calls of usher for each pod",
        figure: ratio(calls.median),
        spread: range(calls, ratio),
        target: atMost(PROMISED.calls, calls.median),
      },
      spent("kube-apiserver", "apiServer"),
      spent("etcd", "etcd"),
      spent("usher, both replicas", "usher"),
      spent("the harness, its proxy and its kubelet", "proxy"),
      spent("the creators", "creators"),
    ],
    figures: {
      creators: CREATORS,
      rounds,
      pods: most,
      policies: POLICIES,
      cores,
      ratio: usher.found,
      bare: bare.found,
      own: own.found,
      samples,
    },
  };
}
