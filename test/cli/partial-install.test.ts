// Commands that do a part of an installation: the chart's hooks run them.
import { expect, test } from "vitest";
import { at, type JsonObject } from "../../src/core/json.ts";
import { remembering } from "./installation-server.ts";

const CRD =
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusterpodschedulingpolicies.kupid.gardener.cloud";
const ANCHOR = "/apis/rbac.authorization.k8s.io/v1/clusterroles/usher-installation";
const ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/usher";

test("install --crds-only creates only CRDs, and changes none the second time", async () => {
  const { cluster, run } = await remembering();
  const first = await run("install", "--crds-only");
  expect(first.code, first.err).toBe(0);
  expect(first.out).toMatch(/clusterpodschedulingpolicies\.kupid\.gardener\.cloud +create/);
  const client = cluster.server.client;
  expect((await client.request("GET", CRD)).status).toBe(200);
  expect((await client.request("GET", ROLE)).status).toBe(404);
  const again = await run("install", "--crds-only");
  expect(again.out).toMatch(/clusterpodschedulingpolicies\.kupid\.gardener\.cloud +unchanged/);
});

test("install --crds-only leaves a CRD that a newer usher wrote", async () => {
  const { cluster, run } = await remembering();
  await run("install", "--crds-only");
  const client = cluster.server.client;
  const live = (await client.request("GET", CRD)).body as JsonObject;
  const labels = { ...(at(live, "metadata", "labels") as JsonObject), "app.kubernetes.io/version": "99.0.0" };
  await client.request("PATCH", `${CRD}?fieldManager=usher&force=true`, {
    body: {
      ...live,
      metadata: { ...(live["metadata"] as JsonObject), labels, managedFields: undefined as never },
    },
    contentType: "application/apply-patch+yaml",
  });
  const { code, out } = await run("install", "--crds-only");
  expect(code).toBe(0);
  expect(out).toMatch(
    /clusterpodschedulingpolicies\.kupid\.gardener\.cloud +stays +written by usher 99\.0\.0/,
  );
});

test("uninstall --webhooks-only removes the anchor and leaves roles and CRDs; --dry-run removes nothing", async () => {
  const { cluster, run } = await remembering();
  expect((await run("install")).code).toBe(0);
  const client = cluster.server.client;
  const dry = await run("uninstall", "--webhooks-only", "--dry-run");
  expect(dry.out).toMatch(/ClusterRole usher-installation +delete/);
  expect((await client.request("GET", ANCHOR)).status).toBe(200);
  const { code, err } = await run("uninstall", "--webhooks-only");
  expect(code, err).toBe(0);
  expect((await client.request("GET", ANCHOR)).status).toBe(404);
  for (const path of [ROLE, CRD]) expect((await client.request("GET", path)).status).toBe(200);
});

test("verify reports webhooks that are not registered, with exit code 1", async () => {
  const { run } = await remembering();
  await run("install");
  const { code, out } = await run("verify", "--timeout", "0");
  expect(code).toBe(1);
  expect(out).toMatch(/MutatingWebhookConfiguration usher +failed +does not exist/);
});
