import { join } from "node:path";
import { expect, test } from "vitest";
import { EXAMPLES, folder, reviewed, reviewedOne, usher } from "./usher.ts";

/** The provenance annotation of a stored object that usher changed. */
const NOTE = JSON.stringify({
  placement: [
    {
      policy: "ClusterPodSchedulingPolicy/etcd-pool",
      set: ["/spec/template/spec/nodeSelector/pool"],
    },
  ],
});

const STATEFUL_SET = (parts: { note?: string; nodeSelector?: object; name?: string } = {}) =>
  JSON.stringify({
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: {
      name: parts.name ?? "etcd-main",
      namespace: "shop",
      ...(parts.note === undefined ? {} : { annotations: { "usher.dev/provenance": parts.note } }),
    },
    spec: {
      template: {
        metadata: { labels: { app: "etcd", role: "main" } },
        spec: { containers: [{ name: "etcd", image: "etcd:3.6" }], nodeSelector: parts.nodeSelector ?? {} },
      },
    },
  });

const STORED = STATEFUL_SET({ note: NOTE, nodeSelector: { pool: "etcd" } });
const UPDATE = ["--operation", "UPDATE"];

test("an update restores injections of the stored object, and adds none", async () => {
  const directory = folder({ "old.json": STORED, "new.json": STATEFUL_SET() });
  const args = [join(directory, "new.json"), "--old", join(directory, "old.json"), "--source", EXAMPLES];
  const created = await reviewedOne([join(directory, "new.json"), "--source", EXAMPLES]);
  expect(created.changes.map(({ policy }) => policy)).toEqual(["etcd-pool", "zone-a"]);
  const updated = await reviewedOne([...args, ...UPDATE]);
  expect(updated.changes).toMatchObject([
    { policy: "etcd-pool", path: "spec.template.spec.nodeSelector.pool" },
  ]);
  // --old implies UPDATE.
  expect(await reviewedOne(args)).toEqual(updated);
  const traced = await usher(["review", ...args, ...UPDATE, "--trace"]);
  expect(traced.out.split("\n").slice(1, 6)).toEqual([
    "  batch-nights       no effect  podSelector: needs kind=batch, there is no label kind",
    "  etcd-pool          applies    on update it restores what it had added, and adds nothing new (spec.onUpdate is Restore)",
    "    + nodeSelector pool=etcd restored",
    "  shop/fast-disks    no effect  podSelector: needs disk in (fast, fastest), there is no label disk",
    "  zone-a             no effect  on update it restores what it had added, and adds nothing new (spec.onUpdate is Restore)",
  ]);
});

test("the stored object may be in the source, and the new one on standard input", async () => {
  const source = folder({ "stored.json": STORED });
  const updated = await reviewedOne(["-", "--source", source, ...UPDATE], STATEFUL_SET());
  expect(updated.changes.map(({ policy }) => policy)).toEqual(["etcd-pool"]);
});

test("an UPDATE without a stored object is a problem", async () => {
  const source = folder({ "stored.json": STORED });
  const two = `${STATEFUL_SET({ name: "other" })}\n${STATEFUL_SET()}`;
  const { results, err, code } = await reviewed(["-", "--source", source, ...UPDATE], two);
  expect(results.map(({ object }) => object.name)).toEqual(["etcd-main"]);
  expect(err).toMatch(/^stdin:1:\d+: metadata\.name: UPDATE requires the stored StatefulSet shop\/other/m);
  expect(code).toBe(2);
});

test("forged provenance is removed", async () => {
  const source = folder({ "stored.json": STATEFUL_SET() });
  const { patch, changes } = await reviewedOne(["-", "--source", source, ...UPDATE], STORED);
  expect(changes).toMatchObject([{ module: "usher", message: "provenance annotation corrected" }]);
  expect(patch).toEqual([{ op: "remove", path: "/metadata/annotations/usher.dev~1provenance" }]);
  const { out } = await usher(["review", "-", "--source", source, ...UPDATE], { stdin: STORED });
  expect(out).toMatch(/StatefulSet shop\/etcd-main +patch +~ provenance annotation corrected +usher/);
});

test("--old is not allowed for CREATE", async () => {
  const { code, err } = await usher([
    "review",
    "-",
    "--old",
    "x",
    "--operation",
    "CREATE",
    "--source",
    EXAMPLES,
  ]);
  expect(code).toBe(2);
  expect(err).toContain("--old can't be combined with --operation CREATE");
});
