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

/** The webhooks that a running usher would have registered. */
async function register(cluster: TestInstallation, namespace: string): Promise<void> {
  const { out } = await usher(["manifests", "--webhooks", "-o", "json", "--config", config({ namespace })]);
  for (const object of JSON.parse(out).items) cluster.have(object);
}

const FIRST = ["--replicas", "1", "--image", "r.example/usher:mine", "--pod-label", "team=a"];
const SPEC = { openNamespaces: ["kube-system"], modules: { placement: { repairDrift: false } } };

test("a second install keeps settings without a flag, lists them, and changes nothing", async () => {
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

test("objects that a later configuration does not have are listed, then deleted", async () => {
  const { cluster, run } = await remembering();
  const optional = () =>
    [...cluster.server.objects.keys()].filter((path) => /networkpolicies|watchdog/.test(path)).sort();
  await run("install", "--config", config({ networkPolicy: { enabled: true } }));
  const all = optional();
  expect(all.join()).toMatch(
    /deployments\/usher-watchdog.*networkpolicies\/usher.*clusterroles\/usher-watchdog/,
  );
  const off = config({ watchdog: { enabled: false } });
  const dry = await run("install", "--config", off, "--dry-run");
  expect(dry.out).toMatch(/^NetworkPolicy usher-system\/usher +delete +of what is off$/m);
  expect(optional()).toEqual(all);
  expect((await run("install", "--config", off)).code).toBe(0);
  expect(optional()).toEqual([]);
});

test("each flag changes only its own setting", async () => {
  const { cluster, run } = await remembering();
  await run("install", ...FIRST, "--config", config(SPEC));
  await run("install", "--replicas", "3");
  expect(at(deployment(cluster), "spec", "replicas")).toBe(3);
  expect(configuration(cluster)).toMatchObject(SPEC);
  await run("install", "--config", config({ openNamespaces: [] }), "--pod-label", "team=b");
  expect(configuration(cluster)).toEqual({ namespace: "usher-system", openNamespaces: [] });
  const template = at(deployment(cluster), "spec", "template");
  expect(at(deployment(cluster), "spec", "replicas")).toBe(3);
  expect(stringAt(template, "metadata", "labels", "team")).toBe("b");
  expect(stringAt(template, "spec", "containers", 0, "image")).toBe("r.example/usher:mine");
});

test("--defaults resets settings, even if the installed configuration is invalid", async () => {
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
  expect(configuration(cluster, "hall")).toEqual({ namespace: "hall" });
  expect(at(deployment(cluster, "hall"), "spec", "replicas")).toBe(2);
});

test("default values are not listed as kept", async () => {
  const { run } = await remembering();
  await run("install");
  const { out } = await run("install");
  expect(out).not.toMatch(/kept as installed/);
  expect(out).toMatch(/objects: \d+ to create, 0 to update/);
});

test("a configuration edited as YAML is kept", async () => {
  const { cluster, run } = await remembering();
  await run("install");
  const map = live(cluster, "v1", "ConfigMap", "usher-configuration", "usher-system") ?? {};
  const text =
    "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec:\n  openNamespaces: [kube-system]\n";
  cluster.have({ ...map, data: { "configuration.yaml": text } });
  expect((await run("install")).out).toMatch(/kept as installed: the configuration;/);
  expect(configuration(cluster)).toMatchObject({ openNamespaces: ["kube-system"] });
});

test("a second installation is an error with the namespace of the first; nothing is written", async () => {
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

test("install without -n uses the namespace of the installation", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  const { code, err } = await run("install", "--replicas", "3");
  expect(code).toBe(0);
  expect(err).toMatch(/namespace hall/);
  expect(err).toMatch(/kubectl rollout status -n hall deployment\/usher/);
  expect(at(deployment(cluster, "hall"), "spec", "replicas")).toBe(3);
  expect(deployment(cluster)).toEqual({});
});

test("uninstall without -n uses the namespace of the installation", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  await register(cluster, "hall");
  const { code, err } = await run("uninstall");
  expect(code).toBe(0);
  expect(err).toMatch(/usher is uninstalled\./);
  expect(deployment(cluster, "hall")).toEqual({});
});

test("uninstalling one of two reports the other, and keeps what it needs", async () => {
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

test("uninstalling from another namespace reports where usher is installed", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  cluster.written.length = 0;
  const { out, err } = await run("uninstall", "-n", "foyer");
  expect(out + err).toMatch(/usher is not installed in namespace foyer/);
  expect(err).toMatch(/in namespace hall.*uninstall -n hall/s);
  expect(err).not.toMatch(/usher is uninstalled/);
  expect(cluster.written).toEqual([]);
});

test("nodes of another installation are not cleaned up", async () => {
  const { cluster, run } = await remembering();
  await run("install", "-n", "hall");
  const taints = [{ key: "usher.dev/starting", effect: "NoSchedule" }];
  cluster.have({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: { taints } });
  const freed = async (...args: string[]) => (await run("uninstall", "--dry-run", ...args)).out;
  expect(await freed("-n", "foyer")).not.toMatch(/Node n1/);
  expect(await freed("-n", "hall")).toMatch(/Node n1 +free/);
});

test("a downgrade is an error with both versions, unless allowed", async () => {
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
  "nodes that may not be listed are reported, even if usher is not installed %j",
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
)("%j -n %j is invalid", async (words, name) => {
  const { code, err } = await usher([...words, "-n", name]);
  expect(code).toBe(2);
  expect(err).toMatch(/--namespace.*DNS label/);
  expect(err).not.toMatch(/internal error/);
});

test.each(["install", "manifests"])(
  "%s: an invalid namespace in the configuration is an error",
  async (command) => {
    const { code, err } = await usher([command, "--config", config({ namespace: "a/b" })]);
    expect(code).toBe(2);
    expect(err).toMatch(/namespace.*"a\/b" is not a DNS label/);
  },
);

test("a failed discovery is an error of the cluster, not an internal error", async () => {
  const { cluster, run } = await remembering();
  const { fault } = cluster.server;
  cluster.server.fault = (method, path, options) =>
    path === "/apis/apps/v1" ? refuse(403, "Forbidden") : fault(method, path, options);
  const { code, err } = await run("install");
  expect(code).toBe(3);
  expect(err).toMatch(/GET \/apis\/apps\/v1: the API server answered 403/);
  expect(err).not.toMatch(/internal error/);
});
