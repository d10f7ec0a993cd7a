import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dashboardOf, sessionOf } from "../../test/support/dashboard/dashboard.ts";
import type { JsonObject } from "../core/json.ts";
import { KeptPods, shown } from "./kept-objects.ts";
import type * as Model from "./model.ts";

/** In every place where an object can hold one. None may be in any response. */
const SECRET = "hunter2-0f9c";

const env = [
  { name: "PASSWORD", value: SECRET },
  { name: "TOKEN", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
];
const copy = {
  "kubectl.kubernetes.io/last-applied-configuration": JSON.stringify({ spec: { env } }),
  "example.com/rendered": JSON.stringify({ env }),
};
const podSpec = {
  nodeName: "node-1",
  initContainers: [{ name: "init", image: "init:1", env }],
  containers: [{ name: "main", image: "main:1", env }],
  ephemeralContainers: [{ name: "debug", image: "debug:1", env }],
};
const MARKUP = `<img src=x onerror=alert(1)>`;
const LONG = "n".repeat(253);

const OBJECTS: JsonObject[] = [
  {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "shop", labels: { note: "x" }, annotations: copy },
  },
  {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name: "node-1",
      labels: { pool: "\u202egp", "emoji.example/x": "🙂", a: MARKUP },
      annotations: copy,
    },
  },
  { apiVersion: "v1", kind: "Node", metadata: { name: LONG } },
  {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s", namespace: "shop" },
    data: { k: SECRET },
    stringData: { l: SECRET },
  },
  {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: "web-0",
      namespace: "shop",
      labels: { app: "web" },
      annotations: { ...copy, "usher.dev/provenance": MARKUP },
    },
    spec: podSpec,
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "shop", annotations: copy },
    spec: {
      selector: { matchLabels: { app: "web" } },
      template: { metadata: { labels: { app: "web" }, annotations: copy }, spec: podSpec },
    },
  },
  {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: { name: "nightly", namespace: "shop" },
    spec: {
      schedule: "0 3 * * *",
      jobTemplate: { spec: { template: { spec: { ...podSpec, restartPolicy: "Never" } } } },
    },
  },
  {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name: "all", annotations: copy },
    spec: { namespaceSelector: {}, podSelector: {}, nodeSelector: { pool: "x" } },
  },
];

let folder = "";
let dashboard: Awaited<ReturnType<typeof dashboardOf>>;
let cookie = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "usher-hostile-"));
  writeFileSync(join(folder, "cluster.yaml"), OBJECTS.map((one) => JSON.stringify(one)).join("\n---\n"));
  dashboard = await dashboardOf([folder]);
  cookie = await sessionOf(dashboard.server);
});
afterAll(async () => {
  await dashboard.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function body(path: string, sent?: unknown): Promise<string> {
  const headers = { cookie, origin: dashboard.origin, "content-type": "application/json" };
  const response = await fetch(
    `${dashboard.origin}${path}`,
    sent === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(sent) },
  );
  return response.text();
}

/** Every call of the contract, with every object of the cluster where it takes one. */
async function everyResponse(): Promise<(readonly [call: string, text: string])[]> {
  const overview = JSON.parse(await body("/api/overview")) as Model.Overview;
  const objects = OBJECTS.map(
    ({ kind, metadata }) => ({ kind, ...(metadata as JsonObject) }) as Model.ObjectRef,
  );
  const named = objects.flatMap(({ kind, namespace = "", name }) =>
    ["explain", "manifest"].map((call) => `/api/${call}?kind=${kind}&namespace=${namespace}&name=${name}`),
  );
  const paths = [
    "/api/overview",
    "/api/policies",
    "/api/decisions",
    ...overview.lenses.flatMap(({ name }) =>
      overview.groupings.map((one) => `/api/map?lens=${name}&group=${one.name}`),
    ),
    ...overview.tables.map(({ name }) => `/api/tables/${name}`),
    "/api/nodes/node-1",
    `/api/nodes/${LONG}`,
    "/api/pods/shop/web-0",
    `/api/search?q=${SECRET}`,
    "/api/search?q=web",
    ...named,
  ];
  const responses = await Promise.all(paths.map(async (path) => [path, await body(path)] as const));
  const pasted = OBJECTS.filter(({ kind }) => kind !== "Node")
    .map((one) => JSON.stringify(one))
    .join("\n---\n");
  const policies = OBJECTS.filter(({ kind }) => kind !== "Secret")
    .map((one) => JSON.stringify(one))
    .join("\n---\n");
  return [
    ...responses,
    ["explain a manifest", await body("/api/explain", { manifest: pasted })],
    [
      "what if",
      (await body("/api/what-if", { manifests: policies.replaceAll("pool", "other") })).replace(
        // The person's own text, in the command line that says the same.
        /"command":"(?:[^"\\]|\\.)*"/,
        '"command":""',
      ),
    ],
  ];
}

test("no response has a value of an environment variable, data of a Secret or a copy of a manifest", async () => {
  const responses = await everyResponse();
  expect(responses.length).toBeGreaterThan(30);
  for (const [call, text] of responses) {
    expect(text, call).not.toContain(SECRET);
    expect(JSON.parse(text), call).toBeTypeOf("object");
  }
  // Proof that manifests were shown at all.
  expect(responses.find(([call]) => call.includes("manifest?kind=Deployment"))?.[1]).toContain("(not shown)");
  expect(dashboard.failures).toEqual([]);
});

test("names with markup, other directions, emoji and full length stay text in JSON", async () => {
  const node = JSON.parse(await body("/api/nodes/node-1")) as Model.NodeDetail;
  expect(node.labels.map(({ text }) => text)).toContain(`a=${MARKUP}`);
  const map = JSON.parse(await body("/api/map")) as Model.NodeMap;
  expect(map.nodes.map(({ name }) => name)).toContain(LONG);
});

test("reducing a pod is idempotent, keeps a field named __proto__ harmless, and shares the parts of a template", () => {
  const pods = new KeptPods();
  const pod = (name: string, node: string): JsonObject =>
    JSON.parse(
      `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"${name}","namespace":"shop","labels":{"app":"web"}},"spec":{"nodeName":"${node}","__proto__":{"polluted":true},"containers":[{"name":"c","env":[{"name":"A","value":"${SECRET}"}],"volumeMounts":[{"name":"kube-api-access-${name.slice(-5)}","mountPath":"/x"}]}],"volumes":[{"name":"kube-api-access-${name.slice(-5)}"}]}}`,
    ) as JsonObject;
  const [a, b] = [pods.reduce(pod("web-aaaaa", "n1")), pods.reduce(pod("web-bbbbb", "n2"))];
  expect(pods.reduce(a)).toBe(a);
  expect(pods.templateOf(a)).toBe(pods.templateOf(b));
  expect((a["spec"] as JsonObject)["containers"]).toBe((b["spec"] as JsonObject)["containers"]);
  expect(JSON.stringify([a, b])).not.toContain(SECRET);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

test("an object without anything to hide is shown as it is", () => {
  const plain: JsonObject = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "x", annotations: { "a.k8s.io/b": "c" } },
    spec: { containers: [] },
  };
  expect(shown(plain)).toEqual(plain);
});
