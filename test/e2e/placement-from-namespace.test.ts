// Values that a policy takes from the namespace, on a real control plane: the CRD, the injection, drift after another label.
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { folder, program } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { PlacementStage, podSpecOf, SPEC } from "./fixtures/placement-stage.ts";

const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const TEAMS: JsonObject = {
  podSelector: {},
  fromNamespace: {
    nodeSelector: { "example.com/team": { label: "team" } },
    nodeAffinity: [{ key: "example.com/pool", label: "team" }],
    tolerations: [{ key: "example.com/team", effect: "NoSchedule", label: "team" }],
  },
};

describeOwnCluster("values from the namespace", {}, (cluster) => {
  const stage = new PlacementStage(cluster, "shop");
  const deployment = (name: string, namespace: string): JsonObject => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace },
    spec: {
      replicas: 0,
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name } }, spec: SPEC },
    },
  });
  const created = async (name: string, namespace: string) =>
    podSpecOf(
      await cluster().call(
        "POST",
        `/apis/apps/v1/namespaces/${namespace}/deployments`,
        deployment(name, namespace),
      ),
    );

  beforeAll(async () => {
    await cluster().createNode("plain");
    await stage.install();
  });

  test("the CRD itself refuses what is ambiguous, while manifests of kupid stay valid", async () => {
    const post = (name: string, spec: JsonObject) =>
      cluster().request("POST", `${POLICIES}?dryRun=All`, {
        apiVersion: "kupid.gardener.cloud/v1alpha1",
        kind: "ClusterPodSchedulingPolicy",
        metadata: { name },
        spec: { namespaceSelector: {}, podSelector: {}, ...spec },
      });
    const both = { fromNamespace: { nodeSelector: { pool: { label: "a", annotation: "b" } } } };
    const refused = await post("both", both);
    expect(refused.status).toBe(422);
    expect(JSON.stringify(refused.body)).toContain("either label or annotation is required");
    expect((await post("kupid", { nodeSelector: { pool: "etcd" } })).status).toBe(201);
  });

  test("one policy serves every team", async () => {
    await stage.createNamespace("payments", { team: "blue" });
    await stage.createNamespace("search", { team: "red" });
    await stage.policies({ teams: TEAMS });
    for (const [namespace, team] of [
      ["payments", "blue"],
      ["search", "red"],
    ] as const) {
      const spec = await created("web", namespace);
      expect(at(spec, "nodeSelector")).toEqual({ "example.com/team": team });
      expect(listAt(spec, "tolerations")).toContainEqual({
        key: "example.com/team",
        operator: "Equal",
        value: team,
        effect: "NoSchedule",
      });
      expect(at(spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")).toEqual([
        { matchExpressions: [{ key: "example.com/pool", operator: "In", values: [team] }] },
      ]);
    }
  });

  test("a namespace without the label is skipped, and counted in the status", async () => {
    expect(at(await created("web", "shop"), "nodeSelector")).toBeUndefined();
    await eventually("the skipped namespace in the status", async () => {
      const found = await cluster().call("GET", `${POLICIES}/teams`);
      return Number(at(found, "status", "skipped") ?? 0) > 0;
    });
  });

  test("another label of the namespace is drift", async () => {
    await cluster().call("PATCH", "/api/v1/namespaces/search", { metadata: { labels: { team: "green" } } });
    const kubeconfig = await cluster().kubeconfig();
    await eventually("the drift of web", async () => {
      const ran = await program([
        "placement",
        "status",
        "-n",
        "search",
        "-o",
        "json",
        "--kubeconfig",
        kubeconfig,
      ]);
      const [workload] = listAt(JSON.parse(ran.out || "null"), "workloads");
      return listAt(workload, "carries").some((one) => stringAt(one, "state") === "stale");
    });
  });

  test("a suite is recorded of the cluster's workloads, and passes", async () => {
    const directory = join(folder({}), "suite");
    const kubeconfig = await cluster().kubeconfig();
    const recorded = await program([
      "test",
      "--record",
      directory,
      "-n",
      "payments",
      "--kubeconfig",
      kubeconfig,
    ]);
    expect(recorded.code, recorded.err).toBe(0);
    expect(recorded.out).toContain("1 case is recorded");
    const { out } = await program(["test", directory]);
    expect(out).toContain("1 case: 1 passed, 0 failed");
  });
});
