import { describe, expect, test } from "vitest";
import { refuse } from "../../../test/support/cluster/api-server.ts";
import { AT, OperandCluster } from "../../../test/support/operator/operand.ts";
import { at, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { OPERAND } from "../../modules/project-limit/operand-names.ts";
import { TRUST_MS } from "../certificates/path-tokens.ts";

const SPEC = { limits: [{ maxProjects: 2 }], certificates: "Own" };
const DAY_MS = 86_400_000;
const POLL_MS = 2_000;
/** No edit lasts longer. */
const DRIFT_MS = 8_000;

const AVAILABLE = { status: { conditions: [{ type: "Available", status: "True" }] } };

/** An operand that is called, with two pods. */
async function running(spec: JsonObject = SPEC): Promise<OperandCluster> {
  const cluster = new OperandCluster(spec);
  await cluster.after(0);
  cluster.schedule(2);
  for (let i = 0; i < 3; i++) await cluster.after(DRIFT_MS);
  return cluster;
}

const hashes = (cluster: OperandCluster) =>
  at(cluster.read(AT.daemonSet), "spec", "template", "metadata", "annotations") as JsonObject;
const bundle = (cluster: OperandCluster) =>
  Buffer.from(
    stringAt(listAt(cluster.read(AT.webhook), "webhooks")[0], "clientConfig", "caBundle") ?? "",
    "base64",
  ).toString();
const served = (cluster: OperandCluster) => stringAt(cluster.read(AT.secret), "data", "tls.crt");

test("creates certificate, configuration, workload; the webhook once a pod is ready", async () => {
  const cluster = new OperandCluster(SPEC);
  const first = await cluster.after(0);
  const order = ["Secret", "ConfigMap", "DaemonSet"].map((kind) => first.lastIndexOf(`apply ${kind}`));
  expect(order).toEqual([...order].sort((a, b) => a - b));
  expect(order).not.toContain(-1);
  cluster.schedule(2, 0);
  expect(await cluster.after(DRIFT_MS)).not.toContain("apply ValidatingWebhookConfiguration");
  cluster.schedule(2);
  expect((await cluster.after(POLL_MS))[0]).toBe("apply ValidatingWebhookConfiguration");
  expect(cluster.condition("Available")).toBe("True Ready");
  expect(cluster.condition("Progressing")).toBe("False AsDesired");
});

test("does not write objects that are as desired", async () => {
  const cluster = await running();
  const version = () => stringAt(cluster.read(AT.limits), "metadata", "resourceVersion");
  const before = version();
  expect(await cluster.after(DRIFT_MS)).toEqual([]);
  expect(version()).toBe(before);
});

test("an equivalent edit replaces no pod; another limit is on the template with the next reconcile", async () => {
  const cluster = await running();
  const before = cluster.read(AT.daemonSet);
  cluster.change({ ...SPEC, count: "Exact", timeoutSeconds: 6 });
  await cluster.after(POLL_MS);
  expect(cluster.read(AT.daemonSet)).toEqual(before);
  expect(at(cluster.read(AT.webhook), "webhooks", 0, "timeoutSeconds")).toBe(6);
  cluster.change({ ...SPEC, limits: [{ maxProjects: 3 }] });
  const writes = await cluster.after(POLL_MS);
  expect(writes.indexOf("apply ConfigMap")).toBeLessThan(writes.indexOf("apply DaemonSet"));
  expect(hashes(cluster)[OPERAND.configurationHash]).not.toBe(
    at(before, "spec", "template", "metadata", "annotations", OPERAND.configurationHash),
  );
});

test("the status reflects the written objects: a rollout is in progress until it completes", async () => {
  const cluster = await running();
  cluster.change({ ...SPEC, podLabels: { team: "a" } });
  await cluster.after(POLL_MS);
  expect(cluster.condition("Progressing")).toBe("True Updating");
  cluster.schedule(2);
  await cluster.after(POLL_MS);
  expect(cluster.condition("Progressing")).toBe("False AsDesired");
});

describe("drift", () => {
  const ours = ({ metadata, ...rest }: JsonObject = {}): JsonObject => {
    const { uid: _uid, resourceVersion: _version, generation: _generation, ...kept } = metadata as JsonObject;
    return { ...rest, metadata: kept };
  };
  const kept = (cluster: OperandCluster) =>
    [...cluster.server.objects.keys()].filter(
      (path) => at(cluster.read(path), "metadata", "labels", "app.kubernetes.io/managed-by") !== undefined,
    );

  test("of every object is repaired", async () => {
    const cluster = await aggregated();
    const paths = kept(cluster);
    expect(paths).toContain(AT.apiService);
    expect(paths.length).toBeGreaterThan(13);
    for (const path of paths) {
      const before = ours(cluster.read(path));
      // The content of a Secret is random, and created again.
      const { data: _data, ...rest } = before;
      const expected = before["kind"] === "Secret" ? rest : before;
      const repaired = async (what: string) => {
        await cluster.after(DRIFT_MS);
        expect(ours(cluster.read(path)), `${path} ${what}`).toMatchObject(expected);
        const keys = Object.keys(before["data"] ?? {});
        expect(Object.keys(cluster.read(path)?.["data"] ?? {})).toEqual(expect.arrayContaining(keys));
        cluster.schedule(2);
      };
      cluster.edit(path, { metadata: { labels: {}, annotations: {}, ownerReferences: [] } });
      await repaired("metadata");
      const fields = ["spec", "data", "rules", "subjects", "webhooks"].filter((one) => one in before);
      cluster.edit(path, Object.fromEntries(fields.map((field) => [field, {}])));
      await repaired(fields.join());
      cluster.server.objects.delete(path);
      await cluster.after(DRIFT_MS);
      expect(cluster.read(path), path).toBeDefined();
      cluster.schedule(2);
      if (path === AT.apiService) cluster.edit(path, AVAILABLE);
      // All objects depend on the webhook's uid.
      if (path === AT.webhook || path === AT.secret)
        for (let i = 0; i < 2; i++) await cluster.after(DRIFT_MS);
    }
  });

  test("is not checked at every turn", async () => {
    const cluster = await running();
    cluster.edit(AT.service, { spec: {} });
    expect(await cluster.after(POLL_MS)).toEqual([]);
    expect(await cluster.after(DRIFT_MS - POLL_MS)).toEqual(["apply Service"]);
  });

  test("ignores a bundle that an injector wrote", async () => {
    const cluster = new OperandCluster({ limits: [] });
    cluster.server.put(AT.secret, { kind: "Secret", data: { "tls.crt": "QQ==", "tls.key": "QQ==" } });
    await cluster.after(0);
    cluster.schedule(2);
    await cluster.after(DRIFT_MS);
    const [entry] = listAt(cluster.read(AT.webhook), "webhooks") as JsonObject[];
    const caBundle = "aW5qZWN0ZWQ=";
    const clientConfig = { ...(entry?.["clientConfig"] as JsonObject), caBundle };
    cluster.edit(AT.webhook, { webhooks: [{ ...entry, clientConfig }] });
    await cluster.after(DRIFT_MS);
    expect(at(cluster.read(AT.webhook), "webhooks", 0, "clientConfig", "caBundle")).toBe(caBundle);
  });
});

async function aggregated(): Promise<OperandCluster> {
  const cluster = new OperandCluster({ ...SPEC, transport: "Aggregated" });
  cluster.server.put(AT.kubeCa, { kind: "ConfigMap", data: { "ca.crt": "the kube CA" } });
  await cluster.after(0);
  cluster.schedule(2);
  await cluster.after(DRIFT_MS);
  cluster.edit(AT.apiService, AVAILABLE);
  for (let i = 0; i < 4; i++) await cluster.after(DRIFT_MS);
  return cluster;
}

test("with no node the webhook is marked, usher's hook takes over, and then it is removed", async () => {
  const cluster = await running();
  const hooks = listAt(cluster.read(AT.webhook), "webhooks");
  cluster.server.put(AT.usher, { kind: "ValidatingWebhookConfiguration", webhooks: [] });
  cluster.schedule(0);
  const mark = () => at(cluster.read(AT.webhook), "metadata", "annotations", OPERAND.leaving);
  expect(await cluster.after(POLL_MS)).toEqual(["apply ValidatingWebhookConfiguration"]);
  const since = mark();
  expect(since).toBeDefined();
  expect(await cluster.after(POLL_MS)).toEqual([]);
  expect(mark()).toBe(since);
  cluster.edit(AT.usher, { webhooks: hooks });
  expect((await cluster.after(POLL_MS))[0]).toBe("remove ValidatingWebhookConfiguration");
  expect(cluster.condition("NoNodes")).toBe("True NoMatchingNode");
  cluster.schedule(2);
  await cluster.after(POLL_MS);
  expect(cluster.read(AT.webhook)).toBeDefined();
  expect(mark()).toBeUndefined();
});

describe("while the spec is invalid", () => {
  const INVALID = { ...SPEC, limits: [{ maxProjects: -1 }], topology: "Deployment" };

  test("everything is kept", async () => {
    const cluster = await running();
    const before = cluster.read(AT.daemonSet);
    cluster.change(INVALID);
    expect(await cluster.after(POLL_MS)).toEqual([]);
    expect(cluster.condition("Degraded")).toBe("True InvalidSpec");
    cluster.edit(AT.service, { spec: {} });
    cluster.server.objects.delete(AT.configMap);
    await cluster.after(DRIFT_MS);
    expect(at(cluster.read(AT.service), "spec", "selector")).toEqual(OPERAND.podLabels);
    expect(stringAt(cluster.read(AT.configMap), "data", OPERAND.configurationKey)).toContain(
      '"maxProjects": 2',
    );
    expect(cluster.read(AT.daemonSet)).toEqual(before);
  });

  test("an operator that saw no other spec keeps the existing objects", async () => {
    const cluster = await running();
    cluster.change(INVALID);
    cluster.restart();
    expect(new Set(await cluster.after(DRIFT_MS))).toEqual(new Set(["apply Secret"]));
    expect(cluster.condition("Degraded")).toBe("True InvalidSpec");
    cluster.change(SPEC);
    await cluster.after(POLL_MS);
    expect(cluster.condition("Degraded")).toBe("False AsDesired");
  });
});

test("a restarted operator adopts everything without a rollout", async () => {
  const cluster = await running();
  const before = cluster.read(AT.daemonSet) ?? {};
  cluster.restart();
  await cluster.after(DAY_MS);
  const { spec, metadata } = cluster.read(AT.daemonSet) ?? {};
  expect(spec).toEqual(before["spec"]);
  expect(at(metadata, "generation")).toBe(at(before, "metadata", "generation"));
});

test("an own certificate is renewed in order: published beside the old one, then served, and the old one stays trusted", async () => {
  const cluster = await running();
  const first = {
    cert: served(cluster),
    hash: hashes(cluster)[OPERAND.certificateHash],
    bundle: bundle(cluster),
  };
  await cluster.after(300 * DAY_MS);
  const both = bundle(cluster);
  expect(both).toContain(first.bundle.trim());
  expect(both).not.toBe(first.bundle);
  expect(served(cluster)).toBe(first.cert);
  await cluster.after(TRUST_MS - 1);
  expect(served(cluster)).toBe(first.cert);
  await cluster.after(1);
  expect(served(cluster)).not.toBe(first.cert);
  expect(hashes(cluster)[OPERAND.certificateHash]).not.toBe(first.hash);
  await cluster.after(DRIFT_MS);
  expect(bundle(cluster)).toContain(first.bundle.trim());
});

test("a lost certificate is issued again, and published before it is served", async () => {
  const cluster = await running();
  const before = bundle(cluster);
  cluster.server.objects.delete(AT.secret);
  const writes = await cluster.after(POLL_MS);
  expect(writes.slice(0, 2)).toEqual(["apply ValidatingWebhookConfiguration", "apply Secret"]);
  expect(bundle(cluster)).toContain(before.trim());
  expect(bundle(cluster)).not.toBe(before);
});

test.each([
  [{}, undefined, ["remove ValidatingWebhookConfiguration"]],
  [{ deletionTimestamp: "2026-01-01T00:00:00Z" }, {}, ["remove ValidatingWebhookConfiguration"]],
  [{ deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["orphan"] }, {}, []],
])(
  "a deleted custom resource %j: the webhook is removed, unless everything is orphaned",
  async (metadata, there, writes) => {
    const cluster = await running();
    if (there === undefined) cluster.server.objects.delete(AT.limits);
    else cluster.edit(AT.limits, { metadata });
    expect(await cluster.after(POLL_MS)).toEqual(writes);
  },
);

test("a failure is reported and retried, and a replica that does not lead writes nothing", async () => {
  const cluster = await running();
  const usual = cluster.server.fault;
  cluster.server.fault = (method, path, options) =>
    method === "PATCH" && path.startsWith(AT.service)
      ? refuse(403, "Forbidden")
      : usual(method, path, options);
  cluster.edit(AT.service, { spec: {} });
  await cluster.after(DRIFT_MS);
  expect(cluster.condition("Degraded")).toBe("True Failed");
  cluster.server.fault = usual;
  cluster.leading = false;
  expect(await cluster.after(DRIFT_MS)).toEqual([]);
  cluster.leading = true;
  expect(await cluster.after(DRIFT_MS)).toEqual(["apply Service"]);
  await cluster.after(POLL_MS);
  expect(cluster.condition("Degraded")).toBe("False AsDesired");
});
