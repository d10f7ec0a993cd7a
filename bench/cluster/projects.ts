// Namespaces through the real API server by one limited user: with the ledger of project-limit and without.
import { isObject, stringAt } from "../../src/core/json.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import { type Cluster, startCluster } from "../../test/cluster/cluster.ts";
import { count, range, ratio } from "../report/number.ts";
import type { Result, Row } from "../report/result.ts";
import { spreadOf } from "../report/statistics.ts";
import type { Servers } from "../servers/servers.ts";
import { installReplicas } from "./install.ts";
import { inParallel } from "./parallel.ts";

const PARALLEL = [1, 20, 200] as const;
const FULL = { rounds: 9, projects: 400 };
const QUICK = { rounds: 3, projects: 200 };
const NAMESPACES = "/api/v1/namespaces";
const RBAC = "rbac.authorization.k8s.io";

/** Usher is called for both; it writes a ledger only for the first. Each round has a new user, so that all ledgers begin empty. */
const ARMS = ["ledger", "unlimited"] as const;
type Arm = (typeof ARMS)[number];

interface Sample {
  readonly arm: Arm;
  readonly parallel: number;
  readonly perSecond: number;
}

export async function projects(servers: Servers): Promise<Result> {
  servers.say("starting a control plane and installing usher …");
  await using cluster = await startCluster();
  await limit(cluster);
  const { rounds, projects: most } = servers.quick ? QUICK : FULL;
  const samples: Sample[] = [];
  for (let round = 0; round <= rounds; round++) {
    servers.say(`round ${round} of ${rounds}, ${most} namespaces each …`);
    for (const parallel of PARALLEL)
      for (const arm of round % 2 === 1 ? ARMS : ARMS.toReversed()) {
        const perSecond = await measure(cluster, arm, `${arm}-${parallel}-${round}`, parallel, most);
        // The first round warms up.
        if (round > 0) samples.push({ arm, parallel, perSecond });
      }
  }
  return {
    title: `Namespaces created by one user through kube-apiserver, three replicas, ${rounds} rounds of ${count(most)}`,
    rows: PARALLEL.map((parallel) => rowOf(samples, parallel)),
    figures: { rounds, projects: most, samples },
  };
}

async function limit(cluster: Cluster): Promise<void> {
  await cluster.createNode("bench-0");
  await installReplicas(cluster, 3);
  await cluster.apply(
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: "bench" },
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: "cluster-admin" },
      subjects: ARMS.map((name) => ({ kind: "Group", apiGroup: RBAC, name })),
    },
    {
      apiVersion: "operator.project.openshift.io/v1",
      kind: "ProjectRequestLimit",
      metadata: { name: "cluster" },
      spec: {
        limits: [
          { users: ["nobody"], maxProjects: 0 },
          { groups: ["ledger"], maxProjects: 4_000 },
        ],
        namespaces: {},
      },
    },
  );
  const nobody = { user: "nobody", groups: ["ledger"] };
  await eventually("the limit in force", async () => {
    const body = { metadata: { name: "probe" } };
    const reply = await cluster.request("POST", `${NAMESPACES}?dryRun=All`, body, nobody);
    return stringAt(reply.body, "message")?.includes("USHER-Q01") === true;
  });
}

async function measure(
  cluster: Cluster,
  arm: Arm,
  user: string,
  parallel: number,
  most: number,
): Promise<number> {
  const by = { user, groups: [arm] };
  const names = Array.from({ length: parallel === 1 ? most / 4 : most }, (_, i) => `${user}-${i}`);
  const began = performance.now();
  await inParallel(names.length, parallel, async (i) => {
    await cluster.call("POST", NAMESPACES, { metadata: { name: names[i] ?? "" } }, by);
  });
  const perSecond = names.length / ((performance.now() - began) / 1_000);
  await inParallel(names.length, 16, async (i) => {
    const path = `${NAMESPACES}/${names[i]}`;
    const { body } = await cluster.request("DELETE", path);
    if (isObject(body))
      await cluster.request("PUT", `${path}/finalize`, { ...body, spec: { finalizers: [] } });
  });
  return perSecond;
}

function rowOf(samples: readonly Sample[], parallel: number): Row {
  const of = (arm: Arm) =>
    samples.filter((one) => one.arm === arm && one.parallel === parallel).map(({ perSecond }) => perSecond);
  const [ledger, unlimited] = [of("ledger"), of("unlimited")];
  const found = spreadOf(ledger.map((value, i) => value / (unlimited[i] ?? Number.NaN)));
  return {
    what: `creates a second, ${parallel} in parallel: with the ledger for without`,
    figure: ratio(found.median),
    spread: range(found, ratio),
    detail: `with ${count(spreadOf(ledger).median)}/s, without ${count(spreadOf(unlimited).median)}/s`,
  };
}
