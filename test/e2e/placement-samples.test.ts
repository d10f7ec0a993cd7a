// Kupid's samples, one at a time, on a real control plane: each has its intended effect, with the real scheduler and
// controllers.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { at, type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { folder, reviewed } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster, LONG } from "../cluster/describe.ts";
import { CLASSES, generatedPods, POLICIES } from "./fixtures/generated-pods.ts";
import { nameIn, originsOf, PlacementStage, podSpecOf } from "./fixtures/placement-stage.ts";
import { expectSame } from "./fixtures/same-object.ts";
import { cleared, expectPlaces, PLAIN, type Sample } from "./placing/places.ts";

const FIXTURES = join(import.meta.dirname, "..", "fixtures");
const SAMPLES = join(FIXTURES, "kupid");
const read = (...parts: string[]) => readFileSync(join(FIXTURES, ...parts), "utf8");
const PODS = LONG ? 1_000 : 250;
const WORKLOADS = read("kupid-workloads", "workloads.yaml");

const POOL = "pool.worker.gardener.cloud/dedicated-for";
const taint = (effect: string) => ({ key: POOL, value: "etcd", effect });
const NODES: Readonly<Record<string, { labels: Record<string, string>; taints: JsonObject[] }>> = {
  "node-1": { labels: {}, taints: [] },
  "node-2": { labels: {}, taints: [] },
  "etcd-open": { labels: { [POOL]: "etcd", "worker-pool.gardener.cloud/dedicated-for": "etcd" }, taints: [] },
  "etcd-noschedule": { labels: { [POOL]: "etcd" }, taints: [taint("NoSchedule")] },
  "etcd-noexecute": { labels: { [POOL]: "etcd" }, taints: [taint("NoExecute")] },
};

const CASES: Readonly<Record<string, Sample>> = {
  "cpsp-chart-etcd": { nodes: ["etcd-open", "etcd-noexecute"] },
  "cpsp-chart-fluent-bit": { app: "fluent-bit", nodes: Object.keys(NODES) },
  "cpsp-node-affinity-tolerations": { role: "events", nodes: ["etcd-open", "etcd-noexecute"] },
  "cpsp-node-affinity": { nodes: ["etcd-open"] },
  "cpsp-node-name": { nodes: ["node-1"], agents: PLAIN },
  "cpsp-node-selector-tolerations": { role: "events", nodes: ["etcd-open", "etcd-noschedule"] },
  "cpsp-node-selector": { nodes: ["etcd-open"] },
  "cpsp-pod-affinity-anti-affinity": { nodes: PLAIN, because: "all together on one node" },
  "cpsp-scheduler-name": { nodes: [], because: "no such scheduler" },
  "cpsp-tolerations": { nodes: [...PLAIN, "etcd-noschedule"] },
  "kubebuilder-clusterpodschedulingpolicy": { nodes: PLAIN },
  "kubebuilder-podschedulingpolicy": { nodes: PLAIN },
  "psp-node-affinity": { nodes: ["etcd-open"] },
  "psp-node-name": { nodes: ["node-1"], agents: PLAIN },
  "psp-node-selector-tolerations": { role: "events", nodes: ["etcd-open", "etcd-noschedule"] },
  "psp-node-selector": { nodes: ["etcd-open"] },
  "psp-pod-affinity-anti-affinity": { nodes: PLAIN, because: "all together on one node" },
  "psp-scheduler-name": { nodes: [], because: "no such scheduler" },
  "psp-tolerations": { nodes: [...PLAIN, "etcd-noschedule"] },
};

const RESOURCES: Readonly<Record<string, string>> = {
  Deployment: "deployments",
  StatefulSet: "statefulsets",
  DaemonSet: "daemonsets",
  Job: "jobs",
  CronJob: "cronjobs",
  Pod: "pods",
};

describeOwnCluster("kupid's samples", {}, (cluster) => {
  const stage = new PlacementStage(cluster, "shoot-one");

  beforeAll(async () => {
    for (const [name, options] of Object.entries(NODES)) await cluster().createNode(name, options);
  });

  beforeAll(async () => {
    await stage.install();
    await cluster().call("PATCH", "/api/v1/namespaces/shoot-one", {
      metadata: { labels: { "gardener.cloud/role": "shoot" } },
    });
    // The CronJob controller runs once a minute: by the end of the samples it has.
    await stage.policies({
      nightly: { podSelector: { matchLabels: { app: "nightly" } }, nodeSelector: { [POOL]: "etcd" } },
    });
    await stage.call("POST", "cronjobs", NIGHTLY);
  });

  test("every sample has a case", () => {
    expect(readdirSync(SAMPLES).sort()).toEqual(
      Object.keys(CASES)
        .map((name) => `${name}.yaml`)
        .sort(),
    );
  });

  test.for(Object.entries(CASES))("%s", async ([name, sample]) => {
    const file = join(SAMPLES, `${name}.yaml`);
    const leftover = name.startsWith("kubebuilder-");
    const applied = await stage.kubectl(["apply", ...(leftover ? ["--validate=warn"] : []), "-f", file]);
    if (leftover) expect(applied.stderr).toMatch(/Warning: .*unknown field "spec.foo"/);
    await stage.stable();

    onTestFinished(async () => {
      await stage.kubectl(["delete", "-f", file, "--wait=false"]);
      await cleared(stage);
      await stage.stable();
    });
    const workloads = workloadsFor(sample);
    const offline = await reviewed([
      folder({ "workloads.yaml": workloads.map((one) => JSON.stringify(one)).join("\n---\n") }),
      "--source",
      folder({
        "policy.yaml": read("kupid", `${name}.yaml`).replace("  foo: bar", ""),
        "namespace.yaml": read("kupid-workloads", "namespace.yaml"),
        "nodes.yaml": Object.keys(NODES).map(nodeText).join("---\n"),
      }),
    ]);
    for (const [i, workload] of workloads.entries()) {
      const resource = RESOURCES[String(workload["kind"])] ?? "";
      const elsewhere = { ...(workload["metadata"] as JsonObject), namespace: "kube-system" };
      const path = `${stage.path(resource, "kube-system")}?dryRun=All`;
      const plain = await cluster().request("POST", path, { ...workload, metadata: elsewhere });
      const live = await stage.request("POST", resource, workload);
      expectSame(workload, offline.results[i], plain, live);
      expectCriteria(file, live.body);
    }
    await stage.kubectl(["create", "job", "--from=cronjob/backup", "backup-now"]);
    await expectPlaces(stage, sample);
  });

  test(`${PODS} generated pods: files and webhook give the same result`, async () => {
    await cluster().apply(...CLASSES);
    await stage.policies(POLICIES);
    const pods = generatedPods(PODS);
    const policies = Object.entries(POLICIES).map(([name, spec]) => ({
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "ClusterPodSchedulingPolicy",
      metadata: { name },
      spec: { namespaceSelector: {}, ...spec },
    }));
    const offline = await reviewed([
      folder({ "pods.json": pods.map((pod) => JSON.stringify(pod)).join("\n---\n") }),
      "-n",
      "shoot-one",
      "--source",
      folder({
        "known.yaml": [...policies, ...CLASSES].map((object) => JSON.stringify(object)).join("\n---\n"),
        "namespace.yaml": read("kupid-workloads", "namespace.yaml"),
        "nodes.yaml": Object.keys(NODES).map(nodeText).join("---\n"),
      }),
    ]);
    expect(offline.results).toHaveLength(pods.length);
    const outcomes = { patched: 0, refused: 0, warned: 0 };
    const indices = pods.keys();
    const compare = async () => {
      for (const i of indices) {
        const pod = pods[i] ?? {};
        const result = offline.results[i];
        const plain = await cluster().request("POST", stage.path("pods?dryRun=All", "kube-system"), pod);
        const live = await stage.request("POST", "pods?dryRun=All", pod);
        try {
          expectSame(pod, result, plain, live);
        } catch (error) {
          throw new Error(`pod ${i}: ${JSON.stringify(pod)}`, { cause: error });
        }
        if (live.status === 403) outcomes.refused += 1;
        else if ((result?.patch.length ?? 0) > 0) outcomes.patched += 1;
        if ((result?.warnings.length ?? 0) > 0) outcomes.warned += 1;
      }
    };
    // In batches: sequentially, most of the time would be waiting.
    await Promise.all(Array.from({ length: 8 }, compare));
    // A comparison of unchanged pods would show nothing.
    expect(outcomes.patched).toBeGreaterThan(PODS / 2);
    expect(outcomes.refused).toBeGreaterThan(PODS / 50);
    expect(outcomes.warned).toBeGreaterThan(PODS / 10);
  });

  test("the real CronJob's Job and its pod are where the policy places them", async () => {
    const pod = await eventually(
      "a pod of the CronJob",
      async () => (await stage.items("pods?labelSelector=app%3Dnightly"))[0],
      90_000,
    );
    const node = await eventually("its node", async () =>
      stringAt(await stage.get(`pods/${nameIn(pod)}`), "spec", "nodeName"),
    );
    expect(node).toBe("etcd-open");
    const [job] = await stage.items("jobs?labelSelector=app%3Dnightly");
    expect(podSpecOf(job ?? null)["nodeSelector"]).toEqual({ [POOL]: "etcd" });
  });
});

const NIGHTLY: JsonObject = {
  metadata: { name: "nightly" },
  spec: {
    schedule: "* * * * *",
    jobTemplate: {
      metadata: { labels: { app: "nightly" } },
      spec: {
        template: {
          metadata: { labels: { app: "nightly" } },
          spec: { restartPolicy: "Never", containers: [{ name: "c", image: "backup:1" }] },
        },
      },
    },
  },
};

function workloadsFor({ app = "etcd-statefulset", role = "main" }: Sample): JsonObject[] {
  const text = WORKLOADS.replaceAll("app: etcd-statefulset", `app: ${app}`).replaceAll(
    "role: main",
    `role: ${role}`,
  );
  return parseAllDocuments(text).map((document) => document.toJSON() as JsonObject);
}

function nodeText(name: string): string {
  const { labels, taints } = NODES[name] ?? { labels: {}, taints: [] };
  return `${JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name, labels }, spec: { taints } })}\n`;
}

/** For a workload that sets nothing itself: all fields of the policy are set, and the policy is named. */
function expectCriteria(file: string, object: Json): void {
  const policy = parse(readFileSync(file, "utf8")) as JsonObject;
  const {
    podSelector,
    namespaceSelector: _,
    foo: _foo,
    tolerations,
    ...criteria
  } = policy["spec"] as JsonObject;
  const spec = podSpecOf(object);
  if (podSelector === undefined) {
    expect(originsOf(object)).toEqual([]);
    return;
  }
  if (at(object, "kind") === "DaemonSet" && criteria["nodeName"] !== undefined) {
    expect(spec["nodeName"]).toBeUndefined();
    return;
  }
  expect(spec).toMatchObject(criteria);
  for (const toleration of Array.isArray(tolerations) ? tolerations : [])
    expect(spec["tolerations"]).toContainEqual(toleration);
  const { kind } = policy;
  const namespace = kind === "PodSchedulingPolicy" ? "shoot-one/" : "";
  expect(originsOf(object).map((origin) => origin.policy)).toEqual([`${kind}/${namespace}${nameIn(policy)}`]);
}
