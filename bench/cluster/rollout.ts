// Pods as a cluster creates them: a Deployment is created, and its controller creates the pods at Kubernetes' pace.
// `pods` measures the API server's maximum; this measures what a rollout waits for.
import { setTimeout as sleep } from "node:timers/promises";
import { at, type JsonObject, listAt } from "../../src/core/json.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { type Cluster, startCluster } from "../../test/cluster/cluster.ts";
import { count, range, ratio } from "../report/number.ts";
import { atLeast, type Result } from "../report/result.ts";
import { spreadOf } from "../report/statistics.ts";
import type { Servers } from "../servers/servers.ts";
import { keepApart } from "./cores.ts";
import { installForPods } from "./install.ts";
import { ARMS, type Arm, isPlaced, podFor, podsPath } from "./pod.ts";

const PROMISED = 0.9;
const FULL = { rounds: 7, pods: 200 };
const QUICK = { rounds: 3, pods: 100 };
const LOOK_EVERY_MS = 20;
const NAME = "bench-rollout";
const LOADED = ARMS.filter(({ name }) => name !== "bare");

interface Sample {
  readonly arm: Arm["name"];
  readonly perSecond: number;
}

export async function rollout(servers: Servers): Promise<Result> {
  servers.say("starting a control plane and installing usher …");
  await using cluster = await startCluster();
  using apart = keepApart(cluster);
  await installForPods(cluster);
  const { rounds, pods } = servers.quick ? QUICK : FULL;
  servers.say("warming up …");
  for (const arm of LOADED) await measure(cluster, arm, pods / 2);
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round++) {
    servers.say(`round ${round} of ${rounds}, ${pods} pods each …`);
    for (const arm of round % 2 === 1 ? LOADED : LOADED.toReversed())
      samples.push(await measure(cluster, arm, pods));
  }
  return resultOf(samples, rounds, pods, apart.says);
}

/** From the Deployment to its last pod. Then everything is deleted. */
async function measure(cluster: Cluster, arm: Arm, pods: number): Promise<Sample> {
  const deployments = `/apis/apps/v1/namespaces/${arm.namespace}/deployments`;
  const started = performance.now();
  await cluster.call("POST", deployments, deploymentOf(pods));
  while (at(await cluster.call("GET", `${deployments}/${NAME}`), "status", "replicas") !== pods)
    await sleep(LOOK_EVERY_MS);
  const seconds = (performance.now() - started) / 1_000;
  const [pod] = listAt(await cluster.call("GET", `${podsPath(arm)}?limit=1`), "items");
  if (pod !== undefined && isPlaced(pod) !== (arm.name === "usher"))
    throw new Error(`the pods in ${arm.namespace} are not what is to be measured`);
  await cluster.call("DELETE", `${deployments}/${NAME}`, { propagationPolicy: "Foreground" });
  await cluster.call("DELETE", podsPath(arm), { gracePeriodSeconds: 0 });
  await eventually("the pods to be gone", async () => {
    await cluster.call("DELETE", podsPath(arm), { gracePeriodSeconds: 0 });
    const left = await cluster.call("GET", deployments);
    return listAt(left, "items").length === 0 && (await isEmpty(cluster, arm));
  });
  return { arm: arm.name, perSecond: pods / seconds };
}

async function isEmpty(cluster: Cluster, arm: Arm): Promise<boolean> {
  return listAt(await cluster.call("GET", `${podsPath(arm)}?limit=1`), "items").length === 0;
}

function deploymentOf(replicas: number): JsonObject {
  const pod = podFor(0);
  const labels = at(pod, "metadata", "labels") ?? {};
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: NAME },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: pod["spec"] },
    },
  };
}

function resultOf(samples: readonly Sample[], rounds: number, pods: number, cores: string): Result {
  const of = (arm: Arm["name"]) => samples.filter((one) => one.arm === arm).map((one) => one.perSecond);
  const [usher, without] = [of("usher"), of("without")];
  const found = spreadOf(usher.map((value, i) => value / (without[i] ?? Number.NaN)));
  return {
    title: `Pods of a Deployment, at the pace of its controller: ${rounds} rounds of ${pods} pods, two replicas from the source; ${cores}`,
    rows: [
      {
        what: "pods a second, usher for no webhook",
        figure: ratio(found.median),
        spread: range(found, ratio),
        detail: `usher ${count(spreadOf(usher).median)}/s, without ${count(spreadOf(without).median)}/s`,
        target: atLeast(PROMISED, found.median),
      },
    ],
    figures: { rounds, pods, cores, ratio: found, samples },
  };
}
