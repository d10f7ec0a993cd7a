// Pods through the real API server, with usher at its door and without.
import { setTimeout as sleep } from "node:timers/promises";
import { type JsonObject, listAt, stringAt } from "../src/core/json.ts";
import type { ClusterAccess } from "../test/cluster/access/access.ts";
import { eventually } from "../test/cluster/access/wait.ts";
import { startCluster } from "../test/cluster/cluster.ts";
import { installUsher } from "./cluster-install.ts";
import { CREATORS, inParallel } from "./cluster-parallel.ts";
import { count, range, ratio } from "./number.ts";
import { NAMESPACE, NAMESPACE_OBJECT, policy, roleOf } from "./policies.ts";
import { atLeast, type Result } from "./result.ts";
import type { Stage } from "./stage.ts";
import { spreadOf } from "./statistics.ts";

const PROMISED = 0.9;
const POLICIES = 10;
const FULL = { rounds: 9, pods: 600, warmPods: 2_000 };
const QUICK = { rounds: 3, pods: 300, warmPods: 300 };
/** Until the replicas have told of the last round and the API server has forgotten its pods. */
const REST_MS = 1_000;

/** Deleting the hook would only make usher's leader put it back, so the load moves: kube-public is the control plane's, and no hook asks there. */
const ARMS = [
  { name: "usher", namespace: NAMESPACE },
  { name: "without", namespace: "kube-public" },
] as const;
type Arm = (typeof ARMS)[number];

interface Round {
  readonly round: number;
  readonly usher: number;
  readonly without: number;
}

export async function pods(stage: Stage): Promise<Result> {
  stage.say("starting a control plane and installing usher …");
  await using cluster = await startCluster();
  for (const name of ["bench-0", "bench-1"]) await cluster.createNode(name);
  await installUsher(cluster);
  await cluster.apply(NAMESPACE_OBJECT, ...Array.from({ length: POLICIES }, (_, i) => policy(i)));
  await waitInForce(cluster);
  const { rounds, pods: most, warmPods } = stage.quick ? QUICK : FULL;
  stage.say(`warming up with ${warmPods} pods each …`);
  for (const arm of ARMS) await createPods(cluster, arm, warmPods);
  const samples: Round[] = [];
  for (let round = 1; round <= rounds; round++) {
    stage.say(`round ${round} of ${rounds}, ${most} pods each …`);
    const took = { usher: 0, without: 0 };
    for (const arm of round % 2 === 1 ? ARMS : ARMS.toReversed())
      took[arm.name] = await createPods(cluster, arm, most);
    samples.push({ round, ...took });
  }
  const found = spreadOf(samples.map((sample) => sample.usher / sample.without));
  const rate = (arm: Arm["name"]) => `${count(spreadOf(samples.map((one) => one[arm])).median)}/s`;
  return {
    title: `Pods created through kube-apiserver, usher for without: ${CREATORS} creators, ${rounds} rounds of ${most} pods, two replicas from the source; API server, etcd, usher and load share the cores, and the harness's proxy between them counts against usher`,
    rows: [
      {
        what: "pods created a second",
        figure: ratio(found.median),
        spread: range(found, ratio),
        detail: `usher ${rate("usher")}, without ${rate("without")}`,
        target: atLeast(PROMISED, found.median),
      },
    ],
    figures: { creators: CREATORS, rounds, pods: most, policies: POLICIES, ratio: found, samples },
  };
}

function path({ namespace }: Arm): string {
  return `/api/v1/namespaces/${namespace}/pods`;
}

/** A pod for a scheduler that nobody runs: what happens after it was created is not what is measured. */
function podFor(i: number): JsonObject {
  const container = (name: string): JsonObject => ({
    name,
    image: `registry.example/etcd/${name}:v3.5.21`,
    command: [`/bin/${name}`, "--data-dir=/var/etcd/data", "--quota-backend-bytes=8589934592"],
    env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
    resources: { requests: { cpu: "100m", memory: "200Mi" }, limits: { memory: "1Gi" } },
  });
  return {
    metadata: { generateName: "bench-", labels: { app: "etcd", role: roleOf(i % POLICIES) } },
    spec: { schedulerName: "nobody", containers: [container("etcd"), container("backup-restore")] },
  };
}

function isPlaced(pod: unknown): boolean {
  return stringAt(pod as JsonObject, "spec", "nodeSelector", "pool") !== undefined;
}

/** The replicas follow by watch; until both know the policies a pod slips through, as the hook is open. */
async function waitInForce(cluster: ClusterAccess): Promise<void> {
  await eventually("the policies in force in all replicas", async () => {
    const asked = Array.from({ length: 20 }, (_, i) =>
      cluster.call("POST", `${path(ARMS[0])}?dryRun=All`, podFor(i)),
    );
    return (await Promise.all(asked)).every(isPlaced);
  });
}

/** Pods a second. They are gone afterwards. */
async function createPods(cluster: ClusterAccess, arm: Arm, most: number): Promise<number> {
  const started = performance.now();
  await inParallel(most, CREATORS, async (i) => {
    const pod = await cluster.call("POST", path(arm), podFor(i));
    // An open hook that is not answered lets pods through, and sooner than usher would: such a round measures nothing.
    if (isPlaced(pod) !== (arm.name === "usher"))
      throw new Error(`a pod in ${arm.namespace} was ${arm.name === "usher" ? "not " : ""}placed by usher`);
  });
  const seconds = (performance.now() - started) / 1_000;
  const options = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
  await cluster.call("DELETE", path(arm), options);
  await eventually("the pods to be gone", async () => {
    return listAt(await cluster.call("GET", `${path(arm)}?limit=1`), "items").length === 0;
  });
  await sleep(REST_MS);
  return most / seconds;
}
