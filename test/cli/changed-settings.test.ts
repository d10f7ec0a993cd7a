// An installation whose settings change while it runs: immutable settings are refused, and objects of disabled features
// are deleted.
import { join } from "node:path";
import { expect, test } from "vitest";
import type { JsonObject } from "../../src/core/json.ts";
import { refuse } from "../support/cluster/api-server.ts";
import { remembering } from "./installation-server.ts";
import { folder } from "./usher.ts";

const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const OVERRIDE = `${ROLES}/usher-node-guard-override`;

function config(spec: JsonObject): string[] {
  const text = JSON.stringify({ apiVersion: "usher.dev/v1alpha1", kind: "UsherConfiguration", spec });
  return ["--config", join(folder({ "usher.yaml": text }), "usher.yaml")];
}

async function installed(spec: JsonObject = {}) {
  const { cluster, run } = await remembering();
  const first = await run("install", ...config(spec));
  expect(first, first.err).toMatchObject({ code: 0 });
  cluster.written.length = 0;
  const { objects } = cluster.server;
  const ready = (readyReplicas: number) =>
    cluster.server.put(DEPLOYMENT, { ...objects.get(DEPLOYMENT), status: { readyReplicas } });
  return { cluster, run, objects, ready };
}

test.each<[string, JsonObject, JsonObject]>([
  ["Own to Secret usher-serving-certificate", {}, { certificates: "Secret" }],
  ["ServiceCA to Own", { certificates: "ServiceCA" }, {}],
  [
    "Secret usher-serving-certificate to Secret other",
    { certificates: "Secret" },
    { certificates: "Secret", certificateSecret: "other" },
  ],
])("certificates from %s are refused while a replica is ready", async (change, before, after) => {
  const { cluster, run, ready } = await installed(before);
  ready(1);
  for (const only of [[], ["--crds-only"]]) {
    const { code, err } = await run("install", ...config(after), ...only);
    expect(code).toBe(1);
    expect(err).toContain(`nothing was changed: certificates can't change from ${change} while usher runs`);
    expect(err).toContain("uninstall usher");
  }
  expect(cluster.written).toEqual([]);
  // The same source with another setting is not a change of source, and a change is allowed while no replica serves.
  expect(
    await run("install", "--crds-only", ...config({ ...before, excludedNamespaces: ["a"] })),
  ).toMatchObject({
    code: 0,
  });
  ready(0);
  expect(await run("install", ...config(after))).toMatchObject({ code: 0 });
});

test("user-facing roles of a disabled module are deleted, and its CRDs stay", async () => {
  const { cluster, run, objects } = await installed();
  expect(objects.has(OVERRIDE)).toBe(true);
  const crds = () =>
    [...objects.keys()].filter((path) => path.includes("/customresourcedefinitions/")).length;
  const before = crds();
  const off = config({ modules: { "node-guard": { enabled: false } } });
  const dry = await run("install", ...off, "--dry-run");
  expect(dry.out).toMatch(/ClusterRole usher-node-guard-override +delete +of what is off/);
  expect(objects.has(OVERRIDE)).toBe(true);
  expect(await run("install", ...off)).toMatchObject({ code: 0 });
  expect(objects.has(OVERRIDE)).toBe(false);
  expect(objects.has(`${ROLES}/usher-policies-view`)).toBe(true);
  expect(crds()).toBe(before);
  expect(cluster.written.filter((one) => one.startsWith("delete "))).toEqual([
    "delete ClusterRole usher-node-guard-override",
  ]);
  // Neither roles without usher's label nor those of another manager are deleted.
  await run("install", ...config({}));
  const role = objects.get(OVERRIDE) ?? {};
  cluster.server.put(OVERRIDE, {
    ...role,
    metadata: { ...(role["metadata"] as JsonObject), labels: {}, managedFields: [] },
  });
  await run("install", ...off);
  expect(objects.has(OVERRIDE)).toBe(true);
});

test("the watchdog is deleted when it is disabled", async () => {
  const { cluster, run } = await installed();
  expect(await run("install", ...config({ watchdog: { enabled: false } }))).toMatchObject({ code: 0 });
  expect(cluster.written).toContain("delete Deployment usher-system/usher-watchdog");
  expect(cluster.written.filter((one) => one.startsWith("delete Deployment"))).toHaveLength(1);
});

test("with manageWebhooks: false install writes no webhooks, and says how to write them", async () => {
  const { run } = await remembering();
  const { code, out, err } = await run("install", ...config({ manageWebhooks: false }));
  expect(code).toBe(0);
  expect(out).not.toContain("WebhookConfiguration");
  expect(err).toContain("manifests --webhooks");
});

test("verify skips checks that no enabled module could answer", async () => {
  const modules = ["placement", "node-labels", "node-guard", "pod-os", "project-limit"];
  const off = Object.fromEntries(modules.map((name) => [name, { enabled: false }]));
  const { cluster, run } = await installed({ modules: off });
  for (const kind of ["Mutating", "Validating"])
    cluster.have({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: `${kind}WebhookConfiguration`,
      metadata: { name: "usher" },
      // Policies of disabled modules are warned about.
      webhooks: kind === "Validating" ? [{ name: "policies.usher.dev" }] : [],
    });
  const { code, out } = await run("verify", "--timeout", "0", ...config({ modules: off }));
  expect(code, out).toBe(0);
  expect(out).toMatch(/MutatingWebhookConfiguration usher +skipped/);
  expect(out).toMatch(/review by usher +skipped +no module that is on/);
  // Webhooks that a module needs are not skipped.
  const placing = config({ modules: { ...off, placement: {} } });
  expect(await run("verify", "--timeout", "0", ...placing)).toMatchObject({
    code: 1,
    out: expect.stringMatching(/usher +failed +has no webhooks/),
  });
  // A module without hooks before its first policy needs no webhooks.
  const limiting = config({ modules: { ...off, "project-limit": {} } });
  expect((await run("verify", "--timeout", "0", ...limiting)).out).toMatch(
    /MutatingWebhookConfiguration usher +skipped/,
  );
});

test("uninstall removes the objects of the installed configuration, and an invalid configuration does not block it", async () => {
  const { cluster, run, objects } = await installed({ watchdog: { enabled: false } });
  const map = "/api/v1/namespaces/usher-system/configmaps/usher-configuration";
  const spec = { apiVersion: "usher.dev/v1alpha1", kind: "UsherConfiguration", spec: { rows: 7 } };
  cluster.server.put(map, { ...objects.get(map), data: { "configuration.yaml": JSON.stringify(spec) } });
  const { code, err } = await run("uninstall");
  expect(code, err).toBe(0);
  expect(objects.has(DEPLOYMENT)).toBe(false);
});

test("certificates of cert-manager are refused where it is not installed", async () => {
  const { cluster, run } = await remembering();
  cluster.answering = (_method, path) =>
    path === "/apis/cert-manager.io/v1" ? refuse(404, "NotFound") : undefined;
  const { code, err } = await run("install", ...config({ certificates: "CertManager" }));
  expect(code).toBe(1);
  expect(err).toMatch(
    /nothing was changed: certificates: CertManager needs cert-manager.*\n.*install cert-manager first/,
  );
  expect(cluster.written).toEqual([]);
});
