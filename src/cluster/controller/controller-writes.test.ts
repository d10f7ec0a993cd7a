// What becomes of the writes of a plan.
import { expect, test } from "vitest";
import { applying, holdingWith, namesOf, until } from "../../../test/support/cluster/controller.ts";
import type { PlannedWrite, Reconciler } from "../../core/module/reconciler.ts";
import type { WriteResult } from "./planned-writes.ts";

test("writes are made in order, and those behind a failed one are not made", async () => {
  let failures = 1;
  const { holding, written, said, changed } = holdingWith(
    { plan: () => ({ writes: [applying("first"), applying("second")] }) },
    { write: async () => (failures-- > 0 ? { failed: "no room" } : "done") },
  );
  holding.start();
  changed("a");
  await until(() => written.length === 3);
  expect(namesOf(written)).toEqual(["first", "first", "second"]);
  expect(said).toHaveLength(1);
  expect(said[0]).toContain("no room");
  await holding.stop();
});

test("a plan may make other keys due, and tell of what it did, once its writes are made", async () => {
  const told: string[] = [];
  const event = { type: "Normal", reason: "Seated", regarding: { kind: "Seat", name: "a" } } as const;
  let failures = 1;
  const { holding, written, changed } = holdingWith(
    {
      plan: (key) => ({
        writes: [applying(key)],
        ...(key === "a" ? { also: ["b"], events: [{ ...event, message: "done", policy: undefined }] } : {}),
      }),
    },
    {
      write: async () => (failures-- > 0 ? { failed: "no room" } : "done"),
      events: (events) => told.push(...events.map(({ reason }) => reason)),
    },
  );
  holding.start();
  changed("a");
  await until(() => written.length === 3);
  expect(namesOf(written)).toEqual(["a", "a", "b"]);
  expect(told).toEqual(["Seated"]);
  await holding.stop();
});

test("a conflict is planned anew, from what is known then", async () => {
  let plans = 0;
  const { holding, written, said, changed } = holdingWith(
    { plan: () => ({ writes: [applying(`plan-${++plans}`)] }) },
    { write: async () => (plans === 1 ? "conflict" : "done") },
  );
  holding.start();
  changed("a");
  await until(() => written.length === 2);
  expect(namesOf(written)).toEqual(["plan-1", "plan-2"]);
  expect(said).toEqual([]);
  await holding.stop();
});

test("what a leader still sends when it no longer leads conflicts with what its successor wrote", async () => {
  const node = { version: 1, by: "nobody" };
  const arrive = (by: string, write: PlannedWrite): WriteResult => {
    if (!("patch" in write) || write.resourceVersion !== String(node.version)) return "conflict";
    node.version += 1;
    node.by = by;
    return "done";
  };
  let plans = 0;
  const patching: Partial<Reconciler> = {
    plan: () => {
      plans += 1;
      const resourceVersion = String(node.version);
      return { writes: [{ patch: [], of: { resource: "nodes", name: "a" }, resourceVersion }] };
    },
  };
  const line = Promise.withResolvers<void>();
  let leads = true;
  const old = holdingWith(patching, {
    leading: () => leads,
    write: async (write) => {
      await line.promise;
      return arrive("old", write);
    },
  });
  const next = holdingWith(patching, { write: async (write) => arrive("next", write) });
  old.holding.start();
  old.changed("a");
  await until(() => old.written.length === 1);
  leads = false;
  next.holding.start();
  next.changed("a");
  await until(() => node.version === 2);
  line.resolve();
  // Planned anew it would fit; but whoever does not lead writes nothing.
  await until(() => plans >= 4);
  expect(old.holding.figures.writes).toEqual([
    { module: "seating", resource: "nodes", result: "conflict", count: 1 },
  ]);
  await Promise.all([old.holding.stop(), next.holding.stop()]);
  expect(old.written).toHaveLength(1);
  expect(node).toEqual({ version: 2, by: "next" });
});

test("who no longer leads writes no more, not even the rest of a plan", async () => {
  let leading = true;
  const { holding, written, changed } = holdingWith(
    { plan: () => ({ writes: [applying("first"), applying("second")] }) },
    {
      leading: () => leading,
      write: async () => {
        leading = false;
        return "done";
      },
    },
  );
  holding.start();
  changed("a");
  await until(() => written.length === 1);
  await holding.stop();
  expect(namesOf(written)).toEqual(["first"]);
});

test("what there is to do, what was written and what can't be is counted", async () => {
  const line = Promise.withResolvers<void>();
  let broken = true;
  const of = { resource: "nodes", name: "b" };
  const { holding, written, changed } = holdingWith(
    {
      plan: (key) => ({
        writes: key === "b" ? [{ patch: [], of, resourceVersion: "1" }] : [applying(key)],
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
  expect(holding.figures).toEqual({ items: none, failing: new Map([["seating", 0]]), writes: [] });
  holding.start();
  changed("a", "b", "c");
  await until(() => written.length === 1);
  expect(holding.figures.items).toEqual({ due: 2, later: 0, running: 1 });
  line.resolve();
  await until(() => holding.figures.failing.get("seating") === 1);
  broken = false;
  await until(() => holding.figures.failing.get("seating") === 0);
  await until(() => holding.figures.items.due + holding.figures.items.running === 0);
  const { writes } = holding.figures;
  expect(writes).toContainEqual({ module: "seating", resource: "ConfigMap", result: "done", count: 2 });
  expect(writes).toContainEqual({ module: "seating", resource: "nodes", result: "done", count: 1 });
  expect(writes.find(({ result }) => result === "failed")?.count).toBeGreaterThan(0);
  await holding.stop();
  expect(holding.figures.items).toEqual(none);
});
