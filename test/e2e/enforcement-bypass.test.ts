// Ways in which a tenant might bypass enforcement, tried on a real control plane with its own controllers.
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { PROVENANCE } from "../../src/core/provenance/annotation.ts";
import { folder, program, usher } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { nameIn, PlacementStage, podSpecOf, SPEC, warningsOf } from "./fixtures/placement-stage.ts";
import { podProtobuf } from "./fixtures/protobuf.ts";

const NAMESPACE = "shop";
const LABELS = { app: "etcd" };
const ELSEWHERE = { ...SPEC, nodeSelector: { pool: "web" } };
const POLICY = {
  podSelector: { matchLabels: LABELS },
  nodeSelector: { pool: "etcd" },
  enforcement: "Refuse",
};

describeOwnCluster("enforcement", {}, (cluster) => {
  const stage = new PlacementStage(cluster, NAMESPACE);
  let [daemonSet, deployment]: [JsonObject, JsonObject] = [{}, {}];

  const pod = (name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
    metadata: { name, labels: LABELS, ...metadata },
    spec,
  });
  const workload = (
    name: string,
    spec: JsonObject,
    { labels = LABELS, ...metadata }: JsonObject = {},
  ): JsonObject => ({
    metadata: { name, ...metadata },
    spec: {
      selector: { matchLabels: { name } },
      template: { metadata: { labels: { name, ...(labels as JsonObject) } }, spec },
    },
  });
  const ownerOf = (object: Json, apiVersion: string, kind: string): JsonObject => ({
    ownerReferences: [
      {
        apiVersion,
        kind,
        name: nameIn(object),
        uid: stringAt(object, "metadata", "uid") ?? "",
        controller: true,
      },
    ],
  });
  const create = async (resource: string, body: JsonObject) =>
    (await stage.request("POST", resource, body)).status;
  /** Updates an object by a merge patch. */
  const update = (resource: string, body: JsonObject) => stage.request("PATCH", resource, body);

  beforeAll(async () => {
    await cluster().createNode("node-etcd", { labels: { pool: "etcd" } });
    await cluster().createNode("node-web", { labels: { pool: "web" } });
    await stage.install();
    const daemon = workload("boss", { ...SPEC, nodeSelector: { pool: "late" } }, { labels: {} });
    await stage.call("POST", "daemonsets", {
      ...daemon,
      spec: { ...(daemon["spec"] as JsonObject), updateStrategy: { type: "OnDelete" } },
    });
    daemonSet = ownerOf(await stage.get("daemonsets/boss"), "apps/v1", "DaemonSet");
    await stage.call("POST", "deployments", workload("boss", SPEC, { labels: {} }));
    deployment = ownerOf(await stage.get("deployments/boss"), "apps/v1", "Deployment");
    // Older than the policy: the result of a bypass.
    await stage.call(
      "POST",
      "pods",
      pod(
        "slipped",
        { ...ELSEWHERE, nodeName: "node-late" },
        { labels: { ...LABELS, name: "boss" }, ...daemonSet },
      ),
    );
    // The DaemonSet's controller adopts the pod there; of two on a node it deletes one.
    await cluster().createNode("node-late", { labels: { pool: "late" } });
    await stage.call("POST", "daemonsets", workload("slipped", ELSEWHERE, deployment));
    await stage.call("POST", "deployments", workload("older", ELSEWHERE));
    await stage.policies({ pool: POLICY });
    await eventually("enforcement to be registered", async () => {
      return (await create("pods?dryRun=All", pod("probe", ELSEWHERE))) === 403;
    });
  });

  test("says when the policy is written what it changes for existing pods, also on a dry run", async () => {
    const path = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies/pool?dryRun=All";
    const edited = await cluster().request("PATCH", path, { spec: { nodeSelector: { pool: "other" } } });
    expect(edited.status).toBe(200);
    expect(warningsOf(edited)).toMatch(
      /if created again, \d+ existing pods? would be .* \(looked at (\d+) of \1 pods\)/,
    );
    expect(warningsOf(edited)).toMatch(/shop\/(?:slipped|older)\b.*: refused for other reasons, USHER-P30: /);
    const same = await cluster().request("PATCH", path, { metadata: { labels: { touched: "yes" } } });
    expect(warningsOf(same)).not.toContain("existing pod");
  });

  test("records the policy, its generation and its rule of a refusal, which explain shows", async () => {
    expect(await create("pods", pod("explained", ELSEWHERE))).toBe(403);
    const entry = await eventually("the refusal in the audit log", async () =>
      cluster()
        .auditLog()
        .find(({ objectRef, verb }) => verb === "create" && objectRef?.name === "explained"),
    );
    expect(Object.entries(entry.annotations ?? {})).toContainEqual([
      expect.stringMatching(/\.usher\.dev\/placement\.refused-by$/),
      expect.stringMatching(/^ClusterPodSchedulingPolicy\/pool@1 \S+ USHER-P30$/),
    ]);
    const files = folder({
      "audit.log": JSON.stringify(entry),
      "pod.json": JSON.stringify({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "explained", namespace: NAMESPACE, labels: LABELS },
        spec: ELSEWHERE,
      }),
    });
    const access = ["--kubeconfig", await cluster().kubeconfig()];
    const log = ["--audit-log", join(files, "audit.log")];
    const { out } = await usher(["explain", "-f", join(files, "pod.json"), ...log, ...access]);
    expect(out).toMatch(/audit log +\S+ +ClusterPodSchedulingPolicy\/pool +1 +\S+ +.*USHER-P30/);
  });

  test("refuses a pod that claims to belong to a DaemonSet, also with a node", async () => {
    expect(await create("pods", pod("a", SPEC, daemonSet))).toBe(403);
    expect(await create("pods", pod("b", { ...SPEC, nodeName: "node-web" }, daemonSet))).toBe(403);
  });

  test("refuses a DaemonSet that claims to belong to a Deployment or a Job", async () => {
    expect(await create("daemonsets", workload("a", SPEC, deployment))).toBe(403);
    await stage.call("POST", "jobs", {
      metadata: { name: "boss" },
      spec: { suspend: true, template: { spec: { ...SPEC, restartPolicy: "Never" } } },
    });
    const job = ownerOf(await stage.get("jobs/boss"), "batch/v1", "Job");
    expect(await create("daemonsets", workload("b", SPEC, job))).toBe(403);
  });

  test("refuses an update that adds an owner and another node, so that a later update can't remove the owner", async () => {
    await stage.call("POST", "daemonsets", workload("c", SPEC));
    const changed = { metadata: deployment, spec: { template: { spec: { nodeSelector: { pool: "web" } } } } };
    expect((await update("daemonsets/c", changed)).status).toBe(403);
    expect(podSpecOf(await stage.get("daemonsets/c"))["nodeSelector"]).toEqual({ pool: "etcd" });
  });

  test("refuses a DaemonSet, and a pod, that is labelled later", async () => {
    const label = { metadata: { labels: LABELS } };
    expect(await create("daemonsets", workload("d", ELSEWHERE, { labels: {} }))).toBe(201);
    expect((await update("daemonsets/d", { spec: { template: label } })).status).toBe(403);
    expect(await create("pods", pod("d", ELSEWHERE, { labels: {} }))).toBe(201);
    expect((await update("pods/d", label)).status).toBe(403);
    expect((await update("pods/d", { metadata: { labels: { other: "yes" } } })).status).toBe(200);
  });

  test("refuses to reselect an object that two updates have laundered", async () => {
    await stage.call("POST", "daemonsets", workload("e", SPEC));
    await cluster().call("POST", `/api/v1/namespaces/${NAMESPACE}/configmaps`, { metadata: { name: "e" } });
    const map = await cluster().call("GET", `/api/v1/namespaces/${NAMESPACE}/configmaps/e`);
    const forged = { ...ownerOf(map, "v1", "ConfigMap"), annotations: { [PROVENANCE]: "{}" } };
    expect((await update("daemonsets/e", { metadata: forged })).status).toBe(200);
    const template = (app: string | null, spec: JsonObject) => ({
      spec: { template: { metadata: { labels: { app } }, spec } },
    });
    expect((await update("daemonsets/e", template("etcd", { nodeSelector: null }))).status).toBe(403);
    // Without the label the policy does not select it, and nothing is restored.
    expect((await update("daemonsets/e", template(null, { nodeSelector: null }))).status).toBe(200);
    expect(podSpecOf(await stage.get("daemonsets/e"))["nodeSelector"]).toBeUndefined();
    expect((await update("daemonsets/e", template("etcd", {}))).status).toBe(403);
  });

  // With this many host names, the object takes 1.2 of the 1.5 MB that etcd stores.
  const hostNames: readonly string[] = Array(400_000).fill("h");
  const fat = { hostAliases: [{ ip: "192.0.2.1", hostnames: hostNames }] };

  test.each<[string, (name: string, pool?: string) => JsonObject | Buffer]>([
    [
      "JSON",
      (name, pool) => pod(name, { ...SPEC, ...fat, nodeSelector: pool === undefined ? {} : { pool } }),
    ],
    [
      "protobuf",
      (name, pool) =>
        podProtobuf({ name, labels: LABELS, nodeSelector: pool === undefined ? {} : { pool }, hostNames }),
    ],
  ])("evaluates a pod of the maximum size for etcd, sent as %s", async (form, fatPod) => {
    const name = `fat-${form.toLowerCase()}`;
    const send = (body: JsonObject | Buffer) => cluster().client.request("POST", stage.path("pods"), body);
    const refused = await send(fatPod(name, "web"));
    expect([refused.status, stringAt(refused.body, "message")]).toEqual([
      403,
      expect.stringContaining("USHER-P"),
    ]);
    const placed = await send(fatPod(name));
    expect(placed.status, stringAt(placed.body, "message")).toBe(201);
    expect(podSpecOf(placed.body)["nodeSelector"]).toEqual({ pool: "etcd" });
    await stage.call("DELETE", `pods/${name}`);
  });

  /** It creates no pods: no node is in its pool. */
  const nowhere = (name: string, spec: JsonObject) =>
    workload(name, { ...SPEC, nodeSelector: { pool: "nowhere" }, ...spec }, { labels: {} });
  const labelled = { spec: { template: { metadata: { labels: LABELS } } } };

  test("evaluates an update whose review has six times the bytes that etcd stores", async () => {
    const env = [{ name: "A", value: "<".repeat(800_000) }];
    const containers = [{ name: "main", image: "app:1", env }];
    await stage.call("POST", "daemonsets", nowhere("fat", { containers }));
    const { status, body } = await update("daemonsets/fat", labelled);
    expect([status, stringAt(body, "message")]).toEqual([403, expect.stringContaining("USHER-P")]);
    await stage.call("DELETE", "daemonsets/fat");
  });

  test("refuses an update that is too large to be parsed", async () => {
    // Two bytes each, for which the parsed object takes 64.
    const nodeSelectorTerms: readonly JsonObject[] = Array(500_000).fill({});
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } };
    await stage.call("POST", "daemonsets", nowhere("dense", { affinity: { nodeAffinity: required } }));
    const refused = await update("daemonsets/dense", labelled);
    expect([refused.status, stringAt(refused.body, "message")]).toEqual([
      413,
      expect.stringMatching(/DaemonSet shop\/dense is too large.*USHER-E05/s),
    ]);
    await stage.call("DELETE", "daemonsets/dense");
  });

  test("allows controllers to create the pods of workloads that meet the policy", async () => {
    for (const [resource, body] of [
      ["daemonsets", workload("good", SPEC)],
      ["deployments", workload("good", SPEC)],
      ["statefulsets", workload("good", SPEC)],
    ] as const)
      await stage.call("POST", resource, body);
    await eventually("pods of three controllers", async () => {
      const pods = await stage.items("pods?labelSelector=name=good");
      return (
        new Set(pods.map((one) => stringAt(one, "metadata", "ownerReferences", 0, "kind") ?? "")).size === 3
      );
    });
  });

  test("warns when a workload older than the policy is scaled or updated", async () => {
    const scaled = await update("deployments/older/scale", { spec: { replicas: 3 } });
    expect([scaled.status, warningsOf(scaled)]).toEqual([200, expect.stringContaining("USHER-P31")]);
    const fewer = await update("deployments/older/scale", { spec: { replicas: 0 } });
    expect([fewer.status, warningsOf(fewer)]).toEqual([200, ""]);
    const annotated = await update("deployments/older", { metadata: { annotations: { a: "b" } } });
    expect([annotated.status, warningsOf(annotated)]).toEqual([200, expect.stringContaining("USHER-P31")]);
  });

  test("keeps working while a tenant sends large objects with forged provenance", async () => {
    const tenant = { user: "mallory", groups: [] };
    await cluster().call("POST", `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}/rolebindings`, {
      metadata: { name: "mallory" },
      subjects: [{ kind: "User", apiGroup: "rbac.authorization.k8s.io", name: "mallory" }],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "edit" },
    });
    const map = await cluster().call("GET", `/api/v1/namespaces/${NAMESPACE}/configmaps/e`);
    const tolerations = Array.from({ length: 20_000 }, (_, i) => ({ key: `t${i}`, operator: "Exists" }));
    const note = tolerations.slice(0, 128).map((one, i) => ({
      policy: `ClusterPodSchedulingPolicy/p${i}`,
      added: { "/spec/template/spec/tolerations": [one] },
    }));
    const metadata = {
      ...ownerOf(map, "v1", "ConfigMap"),
      annotations: { [PROVENANCE]: JSON.stringify({ placement: note }) },
    };
    const path = stage.path("deployments");
    await cluster().call("POST", path, workload("large", { ...SPEC, tolerations }, metadata), tenant);
    let patching = true;
    const patch = { spec: { template: { spec: { tolerations: tolerations.toReversed() } } } };
    const attack = async () => {
      const answers = [];
      while (patching)
        answers.push((await cluster().request("PATCH", `${path}/large?dryRun=All`, patch, tenant)).status);
      return answers;
    };
    const attacks = [attack(), attack()];
    await stage.createNamespace("elsewhere", {});
    const answers = new Set<string>();
    for (let i = 0; i < 15; i++) {
      const place = stage.path("pods?dryRun=All", "elsewhere");
      const good = await cluster().request("POST", place, pod("good", SPEC));
      const bad = await cluster().request("POST", place, pod("bad", ELSEWHERE));
      answers.add(`${good.status} ${bad.status}`);
    }
    patching = false;
    expect([...answers]).toEqual(["201 403"]);
    expect(new Set((await Promise.all(attacks)).flat())).toEqual(new Set([200]));
  });

  test("lists in status the objects that had bypassed it", async () => {
    const kubeconfig = await cluster().kubeconfig();
    const { out, err } = await program([
      "placement",
      "status",
      "-n",
      NAMESPACE,
      "-o",
      "json",
      "--kubeconfig",
      kubeconfig,
    ]);
    const listed = listAt(JSON.parse(out || "null") as Json, "workloads").map(
      (one) =>
        `${stringAt(one, "object", "kind")}/${stringAt(one, "object", "name")} ${stringAt(one, "carries", 0, "state")}`,
    );
    expect(listed, err).toEqual(
      expect.arrayContaining([
        "Pod/slipped missing",
        "DaemonSet/slipped missing",
        "Deployment/older missing",
      ]),
    );
  });
});
