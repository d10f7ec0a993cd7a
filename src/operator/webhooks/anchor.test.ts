import { describe, expect, test, vi } from "vitest";
import { refuse } from "../../../test/support/cluster/api-server.ts";
import {
  ANCHOR,
  ANCHOR_OWNER,
  CRD,
  HOME,
  MUTATING,
  type Running,
  rounds,
  running,
  VALIDATING,
} from "../../../test/support/operator/controller.ts";
import { isObject, type Json, type JsonObject, listAt } from "../../core/json.ts";
import { OWN_LABELS } from "../../core/registration/names.ts";

const NAMESPACE_OWNER = { apiVersion: "v1", kind: "Namespace", name: "usher-system", uid: "ns-1" };

const ownersOf = (run: Running, path: string): readonly Json[] =>
  listAt(run.server.objects.get(path), "metadata", "ownerReferences");

function edit(run: Running, path: string, metadata: JsonObject): void {
  const live = run.server.objects.get(path) ?? {};
  const before = isObject(live["metadata"]) ? live["metadata"] : {};
  run.server.put(path, { ...live, metadata: { ...before, ...metadata } });
}

async function started(prepare: (run: Running) => void = () => undefined): Promise<Running> {
  const run = running();
  prepare(run);
  run.controller.start();
  await rounds(run, 3);
  return run;
}

describe("with the anchor", () => {
  test("the anchor owns the webhooks, and the namespace owns the anchor", async () => {
    const run = await started();
    for (const path of [MUTATING, VALIDATING]) expect(ownersOf(run, path)).toEqual([ANCHOR_OWNER]);
    expect(ownersOf(run, ANCHOR)).toEqual([NAMESPACE_OWNER]);
  });

  test("its other owners stay, and a deleted namespace is removed", async () => {
    const other = { apiVersion: "example.com/v1", kind: "Operator", name: "o", uid: "o-1" };
    const run = await started(({ server }) =>
      server.put(ANCHOR, {
        metadata: { uid: "anchor-1", ownerReferences: [{ ...NAMESPACE_OWNER, uid: "ns-0" }, other] },
      }),
    );
    expect(ownersOf(run, ANCHOR)).toEqual([other, NAMESPACE_OWNER]);
  });

  test("it is written once", async () => {
    const run = await started();
    await rounds(run, 5);
    expect(
      run.server.asked.filter((one) => one.startsWith("PATCH") && one.includes("clusterroles")),
    ).toHaveLength(1);
  });

  test.each<[string, JsonObject]>([
    ["by annotation", { annotations: { "argocd.argoproj.io/tracking-id": "usher:x/y:/z" } }],
    ["by label", { labels: { "argocd.argoproj.io/instance": "usher" } }],
    [
      "by its field manager",
      {
        labels: { "app.kubernetes.io/instance": "usher" },
        managedFields: [{ manager: "argocd-controller", operation: "Update" }],
      },
    ],
  ])(
    "Argo CD's anchor gets no owner, because Argo CD would not delete it then: known %s",
    async (_, metadata) => {
      const run = await started(({ server }) =>
        server.put(ANCHOR, {
          metadata: { uid: "anchor-1", ownerReferences: [NAMESPACE_OWNER], ...metadata },
        }),
      );
      expect(ownersOf(run, ANCHOR)).toEqual([]);
      expect(ownersOf(run, MUTATING)).toEqual([ANCHOR_OWNER]);
    },
  );

  test("Gardener's anchor gets no owner, because Gardener would remove it again", async () => {
    const annotations = { "resources.gardener.cloud/origin": "garden/usher-1" };
    const run = await started(({ server }) =>
      server.put(ANCHOR, { metadata: { uid: "anchor-1", ownerReferences: [NAMESPACE_OWNER], annotations } }),
    );
    expect(ownersOf(run, ANCHOR)).toEqual([]);
    expect(ownersOf(run, MUTATING)).toEqual([ANCHOR_OWNER]);
  });

  test("webhooks of an older version, owned by the namespace, move to the anchor", async () => {
    const run = await started(({ server }) => {
      for (const path of [MUTATING, VALIDATING])
        server.put(path, {
          metadata: { labels: OWN_LABELS, ownerReferences: [NAMESPACE_OWNER] },
          webhooks: [],
        });
    });
    for (const path of [MUTATING, VALIDATING]) expect(ownersOf(run, path)).toEqual([ANCHOR_OWNER]);
  });

  test("an owner that would keep a webhook without usher is removed", async () => {
    const run = await started();
    const other = { apiVersion: "v1", kind: "Namespace", name: "default", uid: "ns-9" };
    edit(run, MUTATING, { ownerReferences: [ANCHOR_OWNER, other] });
    await vi.waitFor(() => expect(ownersOf(run, MUTATING)).toEqual([ANCHOR_OWNER]), 10_000);
  });

  test("an owner that can't be written does not block anything", async () => {
    const run = await started(({ server }) => {
      const { fault } = server;
      server.fault = (method, path, options) =>
        method === "PATCH" && path.startsWith(ANCHOR)
          ? refuse(403, "Forbidden")
          : fault(method, path, options);
    });
    expect(ownersOf(run, MUTATING)).toEqual([ANCHOR_OWNER]);
    expect(run.logged.filter(({ message }) => message.includes("the anchor's owner"))).toHaveLength(1);
  });

  test("once its namespace is being deleted the anchor is removed, and nothing is written again", async () => {
    const run = await started();
    edit(run, HOME, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    await vi.waitFor(() => expect(run.server.objects.has(ANCHOR)).toBe(false), 10_000);
    for (const path of [MUTATING, VALIDATING]) run.server.objects.delete(path);
    await rounds(run, 5);
    for (const path of [ANCHOR, MUTATING, VALIDATING]) expect(run.server.objects.has(path)).toBe(false);
  });
});

describe("without the anchor", () => {
  test.each<[string, (run: Running) => void]>([
    ["it does not exist", ({ server }) => server.objects.delete(ANCHOR)],
    ["it is being deleted", (run) => edit(run, ANCHOR, { deletionTimestamp: "2026-01-01T00:00:00Z" })],
  ])("neither webhooks nor CRDs are written: %s", async (_, prepare) => {
    const run = await started(prepare);
    run.controller.changed();
    await rounds(run, 3);
    for (const path of [MUTATING, VALIDATING, CRD]) expect(run.server.objects.has(path)).toBe(false);
    expect(run.logged.filter(({ message }) => message.includes("nothing is registered"))).toHaveLength(1);
  });

  test("existing objects are not repaired, and all are restored with the anchor", async () => {
    const run = await started();
    run.server.objects.delete(ANCHOR);
    await rounds(run, 2);
    edit(run, MUTATING, { labels: {} });
    run.server.objects.delete(VALIDATING);
    await rounds(run, 3);
    expect(run.server.objects.get(MUTATING)).toMatchObject({ metadata: { labels: {} } });
    expect(run.server.objects.has(VALIDATING)).toBe(false);
    run.server.put(ANCHOR, { metadata: { uid: "anchor-2" } });
    await vi.waitFor(
      () => expect(ownersOf(run, VALIDATING)).toEqual([{ ...ANCHOR_OWNER, uid: "anchor-2" }]),
      10_000,
    );
  });

  test("with roles that can't read the anchor, webhooks are maintained as before, and none is created", async () => {
    const run = await started(({ server }) => {
      const { fault } = server;
      server.fault = (method, path, options) =>
        path.startsWith(ANCHOR) ? refuse(403, "Forbidden") : fault(method, path, options);
      server.put(MUTATING, { metadata: { labels: OWN_LABELS }, webhooks: [] });
    });
    expect(ownersOf(run, MUTATING)).toEqual([NAMESPACE_OWNER]);
    expect(listAt(run.server.objects.get(MUTATING), "webhooks")).toHaveLength(1);
    expect(run.server.objects.has(VALIDATING)).toBe(false);
  });
});
