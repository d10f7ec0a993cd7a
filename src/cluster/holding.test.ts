import { setImmediate as step } from "node:timers/promises";
import { expect, test } from "vitest";
import { need } from "../core/decision.ts";
import type { JsonObject } from "../core/json.ts";
import { SILENT } from "../core/log.ts";
import { defineModule, type Module } from "../core/module.ts";
import type { Need } from "../core/need.ts";
import type { PlannedWrite, Planner } from "../core/plan.ts";
import { Store } from "../core/store.ts";
import { describePlan, Holding, type HoldingOptions } from "./holding.ts";
import type { WriteResult } from "./planned-writes.ts";

const SEAT: Need = { get: { resource: "seats", name: "one" }, live: true };

function applying(name: string): PlannedWrite {
  return { apply: { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "usher" } } };
}

function moduleWith(planner: Planner): Module {
  return defineModule({
    name: "seating",
    summary: "for tests",
    kinds: [
      {
        group: "usher.dev",
        kind: "Seat",
        plural: "seats",
        singular: "seat",
        scope: "Cluster",
        standing: "resource",
        summary: "for tests",
        versions: [],
        prepare: () => ({ policy: undefined, problems: [] }),
      },
    ],
    reads: [{ resource: "nodes", group: "", version: "v1", kind: "Node", scope: "Cluster", keep: [] }],
    hooks: () => [],
    assemble: () => ({}),
    planner,
  });
}

function named(name: string): JsonObject {
  return { metadata: { name } };
}

function holdingWith(planner: Partial<Planner>, options: Partial<HoldingOptions> = {}) {
  const view = new Store(new Map());
  const written: PlannedWrite[] = [];
  const said: string[] = [];
  const write = options.write ?? (async (): Promise<WriteResult> => "done");
  const holding = new Holding({
    modules: [
      moduleWith({
        keys: ({ name }) => [name],
        plan: (key) => ({ writes: [applying(key)] }),
        ...planner,
      }),
    ],
    view: () => view,
    fetch: async (needs) => needs.map(() => ({ absent: true })),
    leading: () => true,
    log: { ...SILENT, warn: (facts, message) => void said.push(`${message} ${JSON.stringify(facts)}`) },
    queue: { backoff: { firstMs: 1, longestMs: 2, forgetMs: Number.POSITIVE_INFINITY } },
    ...options,
    write: async (one) => {
      written.push(one);
      return write(one);
    },
  });
  const changed = (...names: readonly string[]) => {
    const changes = names.map((name) => ({ resource: "nodes", namespace: "", name, object: named(name) }));
    holding.changed(view.apply(changes));
  };
  return { holding, written, said, changed, view };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await step();
}

const namesOf = (written: readonly PlannedWrite[]) =>
  written.map((write) => ("apply" in write ? (write.apply["metadata"] as JsonObject)["name"] : undefined));

test("nothing is planned before it is started; then all that is known is, and every change after it", async () => {
  const { holding, written, changed } = holdingWith({});
  changed("a", "b");
  await step();
  expect(written).toEqual([]);
  holding.start();
  await until(() => written.length === 2);
  changed("c");
  await until(() => written.length === 3);
  expect(namesOf(written)).toEqual(["a", "b", "c"]);
  await holding.stop();
  changed("d");
  await step();
  expect(written).toHaveLength(3);
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
  const patching: Partial<Planner> = {
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

test("what a plan needs is fetched, and it is made again; three times at most", async () => {
  const asked: Need[] = [];
  const { holding, written, changed } = holdingWith(
    {
      plan: (key, { facts }) => {
        const fact = facts.of(SEAT);
        if (fact === undefined) return need(SEAT);
        return { writes: [applying(`${key}-${"found" in fact ? fact.found : "none"}`)] };
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
  holding.start();
  changed("a");
  await until(() => written.length === 1);
  expect(namesOf(written)).toEqual(["a-seat"]);
  expect(asked).toEqual([SEAT]);
  await holding.stop();
});

test("a planner that asks for ever, or breaks, holds up no other key, and is tried again", async () => {
  const tried: string[] = [];
  const { holding, written, said, changed } = holdingWith({
    plan: (key, { facts }) => {
      tried.push(key);
      if (key === "breaks") throw new Error("inner workings");
      // Never the same, so that no fact ever answers it.
      if (key === "asks") {
        const next: Need = { get: { resource: "seats", name: String(tried.length) } };
        facts.of(next);
        return need(next);
      }
      return { writes: [applying(key)] };
    },
  });
  holding.start();
  changed("breaks", "asks", "fine");
  await until(() => tried.filter((key) => key === "breaks").length >= 2 && written.length === 1);
  await until(() => tried.filter((key) => key === "asks").length >= 4);
  expect(namesOf(written)).toEqual(["fine"]);
  expect(said.some((line) => line.includes("inner workings"))).toBe(true);
  expect(said.some((line) => line.includes("needs more than it was allowed"))).toBe(true);
  await holding.stop();
});

test("keys that break cost only their own planner", async () => {
  const { holding, said, changed } = holdingWith({
    keys: () => {
      throw new Error("no keys");
    },
  });
  holding.start();
  changed("a");
  expect(said[0]).toContain("no keys");
  await holding.stop();
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

test("a plan may ask to be looked at again", async () => {
  let plans = 0;
  const { holding, changed } = holdingWith({
    plan: () => (++plans < 3 ? { writes: [], again: 0.001 } : { writes: [] }),
  });
  holding.start();
  changed("a");
  await until(() => plans === 3);
  await holding.stop();
});

test("a dry run prints what would be done and does nothing", async () => {
  const printed: string[] = [];
  const { holding, written, changed } = holdingWith({}, { dryRun: (text) => void printed.push(text) });
  holding.start();
  changed("a");
  await until(() => printed.length === 1);
  expect(written).toEqual([]);
  expect(printed[0]).toContain("seating a:\n  apply ConfigMap usher/a");
  await holding.stop();
});

test("tallies reach planners, and a changed one is a change of its policy", async () => {
  const tally = { module: "seating", policy: { kind: "Seat", name: "one" }, outcomes: { applied: 4 } };
  const seen: unknown[] = [];
  const { holding, view } = holdingWith(
    {
      plan: (_, context) => {
        seen.push(context.tallies?.of("seating", tally.policy));
        return { writes: [] };
      },
    },
    { tallies: { of: () => tally } },
  );
  view.apply([{ resource: "seats.usher.dev", namespace: "", name: "one", object: named("one") }]);
  holding.start();
  await until(() => seen.length === 1);
  holding.counted([tally, { module: "seating", policy: { kind: "Seat", name: "deleted" } }]);
  await until(() => seen.length === 2);
  await step();
  expect(seen).toEqual([tally, tally]);
  await holding.stop();
});

test("a planner may say what the counts of a policy touch", async () => {
  const policy = { kind: "Seat", name: "one" };
  const planned: string[] = [];
  const { holding, view } = holdingWith({
    counted: ({ name }) => [`counts of ${name}`],
    plan: (key) => {
      planned.push(key);
      return { writes: [] };
    },
  });
  view.apply([{ resource: "seats.usher.dev", namespace: "", name: "one", object: named("one") }]);
  holding.start();
  await until(() => planned.length === 1);
  holding.counted([{ module: "seating", policy }]);
  await until(() => planned.length === 2);
  await step();
  expect(planned[1]).toBe("counts of one");
  expect(planned).toHaveLength(2);
  await holding.stop();
});

test("a plan as a person reads it", () => {
  const of = { resource: "nodes", name: "n1" };
  const text = describePlan("seating", "n1", {
    writes: [
      { patch: [{ op: "remove", path: "/spec/x" }], of, resourceVersion: "4" },
      { delete: { resource: "pods", namespace: "shop", name: "p" }, resourceVersion: "5" },
      { status: { seated: 1 }, of, resourceVersion: "6" },
    ],
    again: 30,
  });
  const heads = text.split("\n").filter((line) => !line.startsWith("    "));
  expect(heads).toEqual([
    "seating n1:",
    "  patch nodes n1",
    "  delete pods shop/p",
    "  status of nodes n1",
    "  again in 30 s",
  ]);
  expect(describePlan("seating", "n1", { writes: [] })).toBe("seating n1: nothing to do");
});

test("a planner that names all its items itself is not asked about every object when someone begins to lead", async () => {
  const asked: string[] = [];
  const { holding, written, view } = holdingWith({
    keys: ({ name }) => {
      asked.push(name);
      return [name];
    },
    all: (known) => [`all of ${known.count("nodes")}`],
  });
  view.apply(["a", "b"].map((name) => ({ resource: "nodes", namespace: "", name, object: named(name) })));
  holding.start();
  await until(() => written.length === 1);
  await holding.stop();
  expect(asked).toEqual([]);
  expect(written).toEqual([applying("all of 2")]);
});

test("others may look again when the writes of an item begin to fail, and when they no longer do", async () => {
  let fails = true;
  const planned: string[] = [];
  const { holding, changed } = holdingWith(
    {
      plan: (key, { failure }) => {
        planned.push(`${key}: node ${failure?.("a") ?? "is fine"}`);
        return { writes: key === "a" ? [applying(key)] : [] };
      },
      settled: (key) => (key === "a" ? ["summary"] : []),
    },
    { write: async () => (fails ? { failed: "was refused" } : "done") },
  );
  holding.start();
  changed("a");
  await until(() => planned.includes("summary: node was refused"));
  fails = false;
  await until(() => planned.includes("summary: node is fine"));
  await holding.stop();
  // Only the change from one to the other counts, not every attempt.
  expect(planned.filter((one) => one.startsWith("summary"))).toHaveLength(2);
});

test("planners are told what an object was before it changed", async () => {
  const seen: (JsonObject | undefined)[] = [];
  const { holding, view } = holdingWith({
    keys: ({ before }) => {
      seen.push(before);
      return [];
    },
  });
  holding.start();
  const change = (object: JsonObject | undefined) => ({
    resource: "nodes",
    namespace: "",
    name: "a",
    object,
  });
  for (const object of [named("a"), { ...named("a"), b: 1 }, undefined])
    holding.changed(view.apply([change(object)]));
  await holding.stop();
  expect(seen).toEqual([undefined, named("a"), { ...named("a"), b: 1 }]);
});
