// Objects that need care, on a real API server: usher sends nothing that would be refused, and blocks no other client.
import { beforeAll, expect, test } from "vitest";
import { at, type JsonObject } from "../../src/core/json.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { CLASSES } from "./fixtures/generated-pods.ts";
import { configured } from "./fixtures/install.ts";
import { originsOf, PlacementStage, podSpecOf, SPEC } from "./fixtures/placement-stage.ts";
import { appliedAgain } from "./placing/applied-again.ts";
import { gatedPods } from "./placing/gated-pods.ts";
import { jobs } from "./placing/jobs.ts";
import { names } from "./placing/names.ts";
import { POLICIES, set } from "./placing/objects.ts";
import { shapes } from "./placing/shapes.ts";

const ROLLOUT = {
  group: "argoproj.io",
  version: "v1alpha1",
  kind: "Rollout",
  resource: "rollouts",
  template: "spec.template",
};

/** A kind that preserves unknown fields. */
const ROLLOUT_KIND: JsonObject = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "rollouts.argoproj.io" },
  spec: {
    group: "argoproj.io",
    names: { kind: "Rollout", listKind: "RolloutList", plural: "rollouts", singular: "rollout" },
    scope: "Namespaced",
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
};

describeOwnCluster("placing objects that need care", {}, (cluster) => {
  const stage = new PlacementStage(cluster, "apps");

  beforeAll(async () => {
    for (const name of ["w0", "w1"])
      await cluster().createNode(name, { labels: { pool: "etcd", disk: "ssd", zone: "a" } });
    await cluster().createNode("w2", { labels: { zone: "b" } });
    await cluster().apply(...CLASSES, ROLLOUT_KIND);
  });

  beforeAll(async () => {
    await stage.install(...configured({ workloads: [ROLLOUT] }));
    await stage.policies(POLICIES);
  });

  gatedPods(stage);
  jobs(stage);
  appliedAgain(stage);
  names(stage);
  shapes(stage, cluster);

  test("a DaemonSet is placed by its template, is ready on its nodes, and creates no pod twice", async () => {
    const made = () =>
      stage.audited("create", "pods").filter((user) => user.endsWith(":daemon-set-controller"));
    const ready = (count: number) =>
      eventually(`${count} ready`, async () => {
        const found = await stage.get("daemonsets/agents");
        const { numberReady, desiredNumberScheduled } = at(found, "status") as JsonObject;
        return numberReady === count && desiredNumberScheduled === count;
      });
    await stage.call("POST", "daemonsets", set("DaemonSet", "agents", "daemon"));
    await ready(2);
    expect(made()).toHaveLength(2);
    await cluster().createNode("w3", { labels: { pool: "etcd" } });
    await ready(3);
    expect(made()).toHaveLength(3);
    const [agent] = await stage.items("pods?labelSelector=app%3Ddaemon");
    expect(agent).toBeDefined();
    expect(originsOf(agent ?? null)).toEqual([]);
  });

  test.for<readonly [string, JsonObject, boolean]>([
    [
      "an operator's own kind",
      { apiVersion: "druid.gardener.cloud/v1alpha1", kind: "Etcd", name: "main" },
      true,
    ],
    ["a known kind", { apiVersion: "apps/v1", kind: "Deployment", name: "web" }, false],
    [
      "a kind of the configuration",
      { apiVersion: "argoproj.io/v1alpha1", kind: "Rollout", name: "r" },
      false,
    ],
  ])("a StatefulSet that belongs to %s", async ([, owner, placed]) => {
    const etcd = set("StatefulSet", "etcd", "pool", owner);
    const made = await stage.call("POST", "statefulsets?dryRun=All", etcd);
    expect(podSpecOf(made)["nodeSelector"]).toEqual(placed ? { pool: "etcd" } : undefined);
  });

  test("a controlled ReplicaSet is left alone, and one without a controller is placed", async () => {
    const owner = { apiVersion: "example.com/v1", kind: "Anything", name: "x" };
    const made = [set("ReplicaSet", "owned", "pool", owner), set("ReplicaSet", "free", "pool")].map(
      async (object) => podSpecOf(await stage.call("POST", "replicasets?dryRun=All", object))["nodeSelector"],
    );
    expect(await Promise.all(made)).toEqual([undefined, { pool: "etcd" }]);
  });

  test.for(["kube-system", "kube-public", "kube-node-lease"])(
    "nothing is changed in %s",
    async (namespace) => {
      const template = { metadata: { labels: { app: "pool" } }, spec: SPEC };
      const path = stage.path("podtemplates?dryRun=All", namespace);
      const made = await cluster().call("POST", path, { metadata: { name: "t" }, template });
      expect(podSpecOf(made)["nodeSelector"]).toBeUndefined();
    },
  );
});
