// What is looked at, and when.
import { setImmediate as step } from "node:timers/promises";
import { expect, test } from "vitest";
import { applying, holdingWith, named, namesOf, until } from "../../../test/support/cluster/controller.ts";
import type { JsonObject } from "../../core/json.ts";

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

test("a reconciler that names all its items itself is not asked about every object when someone begins to lead", async () => {
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

test("what changes while everything is looked at does not wait for the rest of it", async () => {
  const { holding, written, changed } = holdingWith({}, { queue: { parallel: 1 } });
  changed("a", "b", "c", "d", "e", "f");
  holding.start();
  changed("new");
  await until(() => written.length === 7);
  await holding.stop();
  expect(namesOf(written).slice(0, 2)).toEqual(["a", "new"]);
});

test("reconcilers are told what an object was before it changed", async () => {
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

test("keys that break cost only their own reconciler", async () => {
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

test("tallies reach reconcilers, and a changed one is a change of its policy", async () => {
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

test("a reconciler may say what the counts of a policy touch", async () => {
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
