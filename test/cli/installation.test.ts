import { join } from "node:path";
import { expect, test } from "vitest";
import { version } from "../../src/cli/version.ts";
import { at, isObject, type JsonObject, stringAt } from "../../src/core/json.ts";
import { refuse } from "../support/cluster/api-server.ts";
import { pathOf, type TestInstallation } from "../support/operator/installation.ts";
import { remembering } from "./installation-server.ts";
import { folder, usher } from "./usher.ts";

function live(cluster: TestInstallation, apiVersion: string, kind: string, name: string, namespace: string) {
  return cluster.server.objects.get(pathOf({ apiVersion, kind, metadata: { name, namespace } }));
}

function deployment(cluster: TestInstallation, namespace = "usher-system"): JsonObject {
  return live(cluster, "apps/v1", "Deployment", "usher", namespace) ?? {};
}

function configuration(cluster: TestInstallation, namespace = "usher-system"): JsonObject {
  const map = live(cluster, "v1", "ConfigMap", "usher-configuration", namespace);
  return JSON.parse(stringAt(map, "data", "configuration.yaml") ?? "{}").spec;
}

function config(spec: JsonObject): string {
  const text = JSON.stringify({ apiVersion: "usher.dev/v1alpha1", kind: "UsherConfiguration", spec });
  return join(folder({ "usher.yaml": text }), "usher.yaml");
}

/** The webhooks, which a running usher would have registered. */
async function register(cluster: TestInstallation, namespace: string): Promise<void> {
  const { out } = await usher(["manifests", "-o", "json", "--config", config({ namespace })]);
  for (const object of JSON.parse(out).items)
    if (/WebhookConfiguration$/.test(object.kind)) cluster.have(object);
}

const FIRST = ["--replicas", "1", "--image", "r.example/usher:mine", "--pod-label", "team=a"];
const SPEC = { openNamespaces: ["kube-system"], modules: { placement: { repairDrift: false } } };

test("a second install keeps what its flags do not say, names it, and finds nothing to change", async () => {
  const { cluster, run } = await remembering();
  const first = await run("install", ...FIRST, "--config", config(SPEC));
  expect(`${first.code} ${first.err}`).toMatch(/^0 /);
  const before = [deployment(cluster), configuration(cluster)];
  cluster.written.length = 0;
  const { code, out } = await run("install");
  expect(code).toBe(0);
  expect(out).toMatch(
    /^kept as installed: the configuration, 1 replica, image r\.example\/usher:mine, pod label team=a; use --defaults/m,
  );
  expect([deployment(cluster), configuration(cluster)]).toEqual(before);
  expect(cluster.written).toEqual([]);
});

test("each flag changes what it says and nothing else", async () => {
  const { cluster, run } = await remembering();
  await run("install", ...FIRST, "--config", config(SPEC));
  await run("install", "--replicas", "3");
  expect(at(deployment(cluster), "spec", "replicas")).toBe(3);
  expect(configuration(cluster)).toMatchObject(SPEC);
  await run("install", "--config", config({ openNamespaces: [] }), "--pod-label", "team=b");
  expect(configuration(cluster)).toEqual({ namespace: "usher-system", openNamespaces: [], featureGates: {} });
  const template = at(deployment(cluster), "spec", "template");
  expect(at(deployment(cluster), "spec", "replicas")).toBe(3);
  expect(stringAt(template, "metadata", "labels", "team")).toBe("b");
  expect(stringAt(template, "spec", "containers", 0, "image")).toBe("r.example/usher:mine");
});

test("--defaults goes back to what is usual, also where the installed configuration can't be read", async () => {
  const { cluster, run } = await remembering();
  await run("install", ...FIRST, "--config", config(SPEC), "-n", "hall");
  const map = live(cluster, "v1", "ConfigMap", "usher-configuration", "hall") ?? {};
  cluster.have({
    ...map,
    data: {
      "configuration.yaml": "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {rows: 7}\n",
    },
  });
  const refused = await run("install");
  expect(refused.code).toBe(2);
  expect(refused.err).toMatch(/ConfigMap hall\/usher-configuration.*rows/s);
  expect(refused.err).toMatch(/--config FILE.*--defaults/s);
  const { code, out } = await run("install", "--defaults");
  expect(code).toBe(0);
  expect(out).not.toMatch(/kept as installed/);
  expect(configuration(cluster, "hall")).toEqual({ namespace: "hall", featureGates: {} });
  expect(at(deployment(cluster, "hall"), "spec", "replicas")).toBe(2);
});

test("what is as usual is not told of as kept", async () => {
  const { run } = await remembering();
  await run("install");
  const { out } = await run("install");
  expect(out).not.toMatch(/kept as installed/);
  expect(out).toMatch(/objects: \d+ to create, 0 to update/);
});

test("a configuration that a person edited as YAML is kept too", async () => {
  const { cluster, run } = await remembering();
  await run("install");
  const map = live(cluster, "v1", "ConfigMap", "usher-configuration", "usher-system") ?? {};
  const text =
    "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec:\n  openNamespaces: [kube-system]\n";
  cluster.have({ ...map, data: { "configuration.yaml": text } });
  expect((await run("install")).out).toMatch(/kept as installed: the configuration;/);
  expect(configuration(cluster)).toMatchObject({ openNamespaces: ["kube-system"] });
});

test("a second installation is refused with the namespace of the first and what to do; nothing is written", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  cluster.written.length = 0;
  for (const more of [[], ["--dry-run"], ["--take-over"]]) {
    const { code, err } = await run("install", "-n", "usher-system", ...more);
    expect(code).toBe(1);
    expect(err).toMatch(/nothing was changed: usher is in namespace hall already.*usher uninstall -n hall/s);
  }
  expect(cluster.written).toEqual([]);
});

test("an install that names no namespace goes to where usher is", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  const { code, err } = await run("install", "--replicas", "3");
  expect(code).toBe(0);
  expect(err).toMatch(/namespace hall/);
  expect(err).toMatch(/kubectl rollout status -n hall deployment\/usher/);
  expect(at(deployment(cluster, "hall"), "spec", "replicas")).toBe(3);
  expect(deployment(cluster)).toEqual({});
});

test("an uninstall that names no namespace goes to where usher is", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  await register(cluster, "hall");
  const { code, err } = await run("uninstall");
  expect(code).toBe(0);
  expect(err).toMatch(/usher is uninstalled\./);
  expect(deployment(cluster, "hall")).toEqual({});
});

test("an uninstall of one of two says that the other remains, and leaves it what it needs", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  await register(cluster, "hall");
  const second = deployment(cluster, "hall");
  const metadata = isObject(second["metadata"]) ? second["metadata"] : {};
  cluster.have({ ...second, metadata: { ...metadata, namespace: "foyer" } });
  const unnamed = await run("uninstall");
  expect(unnamed.code).toBe(2);
  expect(unnamed.err).toMatch(/hall.*foyer.*-n/s);
  const { code, err } = await run("uninstall", "-n", "foyer", "--custom-resources");
  expect(code).toBe(0);
  expect(err).toMatch(/uninstalled from namespace foyer.*in namespace hall.*uninstall -n hall/s);
  expect(deployment(cluster, "foyer")).toEqual({});
  expect(deployment(cluster, "hall")).not.toEqual({});
  expect(live(cluster, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "usher", "")).toBeDefined();
});

test("an uninstall from a namespace without usher says where it is", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  cluster.written.length = 0;
  const { out, err } = await run("uninstall", "-n", "foyer");
  expect(out + err).toMatch(/usher is not installed in namespace foyer/);
  expect(err).toMatch(/in namespace hall.*uninstall -n hall/s);
  expect(err).not.toMatch(/usher is uninstalled/);
  expect(cluster.written).toEqual([]);
});

test("nodes that another usher still looks after are not freed", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  const taints = [{ key: "usher.dev/starting", effect: "NoSchedule" }];
  cluster.have({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: { taints } });
  const freed = async (...args: string[]) => (await run("uninstall", "--dry-run", ...args)).out;
  expect(await freed("-n", "foyer")).not.toMatch(/Node n1/);
  expect(await freed("-n", "hall")).toMatch(/Node n1 +free/);
});

test("an older install over a newer one is refused with both versions, unless it is allowed", async () => {
  const { cluster, run } = await remembering();
  await run("install");
  for (const [path, object] of cluster.server.objects) {
    const metadata = object["metadata"] as JsonObject;
    const labels = { ...(metadata["labels"] as JsonObject), "app.kubernetes.io/version": "99.1.0" };
    cluster.server.put(path, { ...object, metadata: { ...metadata, labels } });
  }
  cluster.written.length = 0;
  const refused = await run("install");
  expect(refused.code).toBe(1);
  expect(refused.err).toMatch(/by usher 99\.1\.0, and this is /);
  expect(refused.err).toContain(`this is ${version()}`);
  expect(cluster.written).toEqual([]);
  expect((await run("install", "--allow-downgrade")).code).toBe(0);
  expect(stringAt(deployment(cluster), "metadata", "labels", "app.kubernetes.io/version")).toBe(version());
});

test.each([[[]], [["--dry-run"]]])(
  "nodes that nobody may look at are told of though nothing else is here %j",
  async (more) => {
    const { cluster, run } = await remembering();
    cluster.refusing = (_, path) => path === "/api/v1/nodes";
    const { code, err } = await run("uninstall", ...more);
    expect(err).toMatch(/nodes may still have .*403/);
    expect(err).toMatch(/remove it with: kubectl/);
    expect(code).toBe(3);
  },
);

const COMMANDS = [
  ["install"],
  ["uninstall"],
  ["review", "x.yaml", "--source", "examples/cluster"],
  ["placement", "status", "--source", "examples/cluster"],
  ["placement", "reapply", "deployment/web"],
];
test.each(
  COMMANDS.flatMap((words) => ["", "a/b", "..", "A", "a".repeat(64)].map((name) => [words, name] as const)),
)("%j -n %j is a mistake in the call", async (words, name) => {
  const { code, err } = await usher([...words, "-n", name]);
  expect(code).toBe(2);
  expect(err).toMatch(/--namespace.*DNS label/);
  expect(err).not.toMatch(/internal error/);
});

test.each(["install", "manifests"])(
  "%s: a namespace that can't be one in a configuration as well",
  async (command) => {
    const { code, err } = await usher([command, "--config", config({ namespace: "a/b" })]);
    expect(code).toBe(2);
    expect(err).toMatch(/namespace.*"a\/b" is not a DNS label/);
  },
);

test("an API server that does not say what it serves is told as a sentence, not as a fault of usher's", async () => {
  const { cluster, run } = await remembering();
  const { fault } = cluster.server;
  cluster.server.fault = (method, path, options) =>
    path === "/apis/apps/v1" ? refuse(403, "Forbidden") : fault(method, path, options);
  const { code, err } = await run("install");
  expect(code).toBe(3);
  expect(err).toMatch(/GET \/apis\/apps\/v1: the API server answered 403/);
  expect(err).not.toMatch(/internal error/);
});
