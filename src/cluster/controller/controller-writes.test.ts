// Writes of a result: order, failures, conflicts, leadership, counts.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import {
  applying,
  controllerWith,
  named,
  namesOf,
  type SeatKey,
  seat,
  until,
} from "../../../test/support/cluster/controller.ts";
import type { PlannedWrite, Reconciler } from "../../core/module/reconciler.ts";
import type { Change } from "../../core/view/view.ts";
import type { PlannedWriteResult } from "./planned-writes.ts";

test("writes are made in order, and a failed write stops those after it", async () => {
  let failures = 1;
  const { controller, written, logged, changed } = controllerWith(
    { reconcile: () => ({ writes: [applying("first"), applying("second")] }) },
    { write: async () => (failures-- > 0 ? { failed: "no room" } : "done") },
  );
  controller.start();
  changed("a");
  await until(() => written.length === 3);
  expect(namesOf(written)).toEqual(["first", "first", "second"]);
  expect(logged).toHaveLength(1);
  expect(logged[0]).toContain("no room");
  await controller.stop();
});

test("after the writes, further keys are enqueued and events and counts are published", async () => {
  const published: string[] = [];
  const event = { type: "Normal", reason: "Seated", regarding: { kind: "Seat", name: "a" } } as const;
  let failures = 1;
  const { controller, written, changed } = controllerWith(
    {
      reconcile: ({ name }) => ({
        writes: [applying(name)],
        ...(name === "a"
          ? {
              enqueue: [seat("b")],
              events: [{ ...event, message: "done", policy: undefined }],
              counts: [{ metric: "seated_total", labels: {} }],
            }
          : {}),
      }),
    },
    {
      write: async () => (failures-- > 0 ? { failed: "no room" } : "done"),
      publish: (events, counts) => {
        published.push(...events.map(({ reason }) => reason), ...counts.map(({ metric }) => metric));
      },
    },
  );
  controller.start();
  changed("a");
  await until(() => written.length === 3);
  expect(namesOf(written)).toEqual(["a", "a", "b"]);
  expect(published).toEqual(["Seated", "seated_total"]);
  await controller.stop();
});

test("a conflict is reconciled again, from the current state", async () => {
  let results = 0;
  const { controller, written, logged, changed } = controllerWith(
    { reconcile: () => ({ writes: [applying(`result-${++results}`)] }) },
    { write: async () => (results === 1 ? "conflict" : "done") },
  );
  controller.start();
  changed("a");
  await until(() => written.length === 2);
  expect(namesOf(written)).toEqual(["result-1", "result-2"]);
  expect(logged).toEqual([]);
  await controller.stop();
});

test("a write of a former leader conflicts with a write of its successor", async () => {
  const node = { version: 1, by: "nobody" };
  const arrive = (by: string, write: PlannedWrite): PlannedWriteResult => {
    if (!("patch" in write) || write.resourceVersion !== String(node.version)) return "conflict";
    node.version += 1;
    node.by = by;
    return "done";
  };
  let results = 0;
  const patching: Partial<Reconciler<SeatKey, unknown>> = {
    reconcile: () => {
      results += 1;
      const resourceVersion = String(node.version);
      return { writes: [{ patch: [], of: { resource: "nodes", name: "a" }, resourceVersion }] };
    },
  };
  const line = Promise.withResolvers<void>();
  let leads = true;
  const old = controllerWith(patching, {
    leading: () => leads,
    write: async (write) => {
      await line.promise;
      return arrive("old", write);
    },
  });
  const next = controllerWith(patching, { write: async (write) => arrive("next", write) });
  old.controller.start();
  old.changed("a");
  await until(() => old.written.length === 1);
  leads = false;
  next.controller.start();
  next.changed("a");
  await until(() => node.version === 2);
  line.resolve();
  // A new reconcile would not conflict, but a former leader writes nothing.
  await until(() => results >= 4);
  expect(old.controller.stats.writes).toEqual([
    { module: "seating", resource: "nodes", result: "conflict", count: 1 },
  ]);
  await Promise.all([old.controller.stop(), next.controller.stop()]);
  expect(old.written).toHaveLength(1);
  expect(node).toEqual({ version: 2, by: "next" });
});

test("a former leader makes no further write, not even the rest of a result", async () => {
  let leading = true;
  const { controller, written, changed } = controllerWith(
    { reconcile: () => ({ writes: [applying("first"), applying("second")] }) },
    {
      leading: () => leading,
      write: async () => {
        leading = false;
        return "done";
      },
    },
  );
  controller.start();
  changed("a");
  await until(() => written.length === 1);
  await controller.stop();
  expect(namesOf(written)).toEqual(["first"]);
});

test("items, writes and failures are counted", async () => {
  const line = Promise.withResolvers<void>();
  let broken = true;
  const of = { resource: "nodes", name: "b" };
  const { controller, written, changed } = controllerWith(
    {
      reconcile: ({ name }) => ({
        writes: name === "b" ? [{ patch: [], of, resourceVersion: "1" }] : [applying(name)],
      }),
    },
    {
      queue: { parallel: 1, backoff: { firstMs: 1, longestMs: 2, forgetMs: Number.POSITIVE_INFINITY } },
      write: async (write) => {
        await line.promise;
        return "patch" in write && broken ? { failed: "no room" } : "done";
      },
    },
  );
  const none = { due: 0, later: 0, running: 0 };
  expect(controller.stats).toEqual({
    items: none,
    failing: new Map([["seating", 0]]),
    writes: [],
    figures: [],
  });
  controller.start();
  changed("a", "b", "c");
  await until(() => written.length === 1);
  expect(controller.stats.items).toEqual({ due: 2, later: 0, running: 1 });
  line.resolve();
  await until(() => controller.stats.failing.get("seating") === 1);
  broken = false;
  await until(() => controller.stats.failing.get("seating") === 0);
  await until(() => controller.stats.items.due + controller.stats.items.running === 0);
  const { writes } = controller.stats;
  expect(writes).toContainEqual({ module: "seating", resource: "ConfigMap", result: "done", count: 2 });
  expect(writes).toContainEqual({ module: "seating", resource: "nodes", result: "done", count: 1 });
  expect(writes.find(({ result }) => result === "failed")?.count).toBeGreaterThan(0);
  await controller.stop();
  expect(controller.stats.items).toEqual(none);
});

const NODE_WRITE = (name: string): PlannedWrite => ({
  patch: [{ op: "add", path: "/metadata/labels/a", value: "b" }],
  of: { resource: "nodes", name },
  resourceVersion: "1",
});

const again = (name: string): Change => ({ resource: "nodes", namespace: "", name, object: named(name) });

test("a key is not reconciled before the view has the key's own write; other keys do not wait", async () => {
  const versions = ["11", "12", "13"];
  let seen = 10;
  const reconciled: string[] = [];
  const { controller, written, changed } = controllerWith(
    {
      reconcile: ({ name }) => {
        reconciled.push(`${name} at ${seen}`);
        return { writes: [NODE_WRITE(name)] };
      },
    },
    {
      write: async () => ({ wrote: versions.shift() ?? "" }),
      has: (resource, wanted) => resource === "nodes" && seen >= Number(wanted),
    },
  );
  controller.start();
  changed("a");
  await until(() => written.length === 1);
  controller.changed([again("a"), again("b")]);
  await until(() => written.length === 2);
  await sleep(100);
  expect(reconciled).toEqual(["a at 10", "b at 10"]);
  seen = 11;
  await until(() => written.length === 3);
  expect(reconciled[2]).toBe("a at 11");
  await controller.stop();
});

test("a write that the view never gets delays its key for ten seconds", async () => {
  let elapsed = 0;
  const { controller, written, changed } = controllerWith(
    { reconcile: ({ name }) => ({ writes: [NODE_WRITE(name)] }) },
    { write: async () => ({ wrote: "7" }), has: () => false, clock: () => elapsed },
  );
  controller.start();
  changed("a");
  await until(() => written.length === 1);
  controller.changed([again("a")]);
  elapsed = 9_999;
  await sleep(60);
  expect(written).toHaveLength(1);
  elapsed = 10_000;
  await until(() => written.length === 2);
  await controller.stop();
});

test("an applied object counts as the resource of its kind", async () => {
  const asked: string[] = [];
  const apply = { apiVersion: "v1", kind: "Node", metadata: { name: "a" } };
  const { controller, written, changed } = controllerWith(
    { reconcile: () => ({ writes: [{ apply, resourceVersion: "1" }] }) },
    {
      write: async () => ({ wrote: "7" }),
      has: (resource, version) => asked.push(`${resource} ${version}`) > 0,
    },
  );
  controller.start();
  changed("a");
  await until(() => written.length === 1);
  controller.changed([again("a")]);
  await until(() => written.length === 2);
  expect(asked).toEqual(["nodes 7"]);
  await controller.stop();
});
