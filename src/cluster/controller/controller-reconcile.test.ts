// Needs and rounds of a reconcile, its errors, and dry runs.
import { expect, test } from "vitest";
import { applying, controllerWith, namesOf, seat, until } from "../../../test/support/cluster/controller.ts";
import { need } from "../../core/decision/decision.ts";
import type { Need } from "../../core/decision/need.ts";
import { describeResult } from "./controller.ts";

const SEAT: Need = { get: { resource: "seats", name: "one" }, live: true };

test("needs are fetched and the key is reconciled again; three times at most", async () => {
  const asked: Need[] = [];
  const { controller, written, changed } = controllerWith(
    {
      reconcile: ({ name }, _state, { facts }) => {
        const fact = facts.of(SEAT);
        if (fact === undefined) return need(SEAT);
        return { writes: [applying(`${name}-${"found" in fact ? fact.found : "none"}`)] };
      },
    },
    {
      fetch: async (needs, deadline) => {
        expect(deadline.remaining()).toBeGreaterThan(0);
        asked.push(...needs);
        return [{ found: "seat", complete: true }];
      },
    },
  );
  controller.start();
  changed("a");
  await until(() => written.length === 1);
  expect(namesOf(written)).toEqual(["a-seat"]);
  expect(asked).toEqual([SEAT]);
  await controller.stop();
});

test("a key that always needs more facts, or throws, delays no other key, and is retried", async () => {
  const tried: string[] = [];
  const { controller, written, logged, changed } = controllerWith({
    reconcile: ({ name }, _state, { facts }) => {
      tried.push(name);
      if (name === "breaks") throw new Error("inner workings");
      // A different need each time, so that no fact ever answers it.
      if (name === "asks") {
        const next: Need = { get: { resource: "seats", name: String(tried.length) } };
        facts.of(next);
        return need(next);
      }
      return { writes: [applying(name)] };
    },
  });
  controller.start();
  changed("breaks", "asks", "fine");
  await until(() => tried.filter((key) => key === "breaks").length >= 2 && written.length === 1);
  await until(() => tried.filter((key) => key === "asks").length >= 4);
  expect(namesOf(written)).toEqual(["fine"]);
  expect(logged.some((line) => line.includes("inner workings"))).toBe(true);
  expect(logged.some((line) => line.includes("needs more facts after 4 rounds"))).toBe(true);
  await controller.stop();
});

test("a reconcile gets the time of a monotonic clock", async () => {
  const times: unknown[] = [];
  const { controller, changed } = controllerWith(
    {
      reconcile: (_key, _state, { now, elapsed }) => {
        times.push([now, elapsed]);
        return { writes: [] };
      },
    },
    { now: () => 60_000, clock: () => 7 },
  );
  controller.start();
  changed("a");
  await until(() => times.length === 1);
  expect(times).toEqual([[60_000, 7]]);
  await controller.stop();
});

test.each(["low", "normal"] as const)(
  "a change is reconciled in the order of the initial keys' priority: %s",
  async (initialPriority) => {
    const order: string[] = [];
    const { controller, changed } = controllerWith(
      {
        initialPriority,
        initialKeys: () => [seat("old-1"), seat("old-2")],
        reconcile: ({ name }) => {
          order.push(name);
          return { writes: [] };
        },
      },
      { queue: { parallel: 1, burst: 1, perSecond: 100 } },
    );
    controller.start();
    changed("changed");
    await until(() => order.length === 3);
    // The first starts before the change arrives.
    expect(order).toEqual(
      initialPriority === "normal" ? ["old-1", "old-2", "changed"] : ["old-1", "changed", "old-2"],
    );
    await controller.stop();
  },
);

test("a resync reconciles the initial keys again, with the state of the first time", async () => {
  const seen: string[] = [];
  const { controller } = controllerWith({
    initialState: () => ({ count: 0 }),
    initialKeys: () => [seat("old")],
    reconcile: ({ name }, state) => {
      const kept = state as { count: number };
      seen.push(`${name} ${++kept.count}`);
      return { writes: [] };
    },
  });
  controller.resync();
  controller.start();
  await until(() => seen.length === 1);
  controller.resync();
  await until(() => seen.length === 2);
  expect(seen).toEqual(["old 1", "old 2"]);
  await controller.stop();
});

test("a dry run prints the planned writes and writes nothing", async () => {
  const printed: string[] = [];
  const { controller, written, changed } = controllerWith({}, { dryRun: (text) => void printed.push(text) });
  controller.start();
  changed("a");
  await until(() => printed.length === 1);
  expect(written).toEqual([]);
  expect(printed[0]).toContain("seating seat a:\n  apply ConfigMap usher/a");
  await controller.stop();
});

test("a dry run prints a result in a fixed format", () => {
  const of = { resource: "nodes", name: "n1" };
  const text = describeResult("seating", seat("n1"), {
    writes: [
      { patch: [{ op: "remove", path: "/spec/x" }], of, resourceVersion: "4" },
      { delete: { resource: "pods", namespace: "shop", name: "p" }, resourceVersion: "5" },
      { status: { seated: 1 }, of, resourceVersion: "6" },
    ],
    requeueAfter: 30,
  });
  const heads = text.split("\n").filter((line) => !line.startsWith("    "));
  expect(heads).toEqual([
    "seating seat n1:",
    "  patch nodes n1",
    "  delete pods shop/p",
    "  status of nodes n1",
    "  requeue after 30 s",
  ]);
  expect(describeResult("seating", seat("n1"), { writes: [] })).toBe("seating seat n1: nothing to do");
});
