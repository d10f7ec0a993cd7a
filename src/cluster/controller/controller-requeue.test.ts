// Which keys are reconciled, and when.
import { setImmediate as step } from "node:timers/promises";
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
import type { JsonObject } from "../../core/json.ts";

test("nothing is reconciled before start; then everything that exists, and every change after it", async () => {
  const { controller, written, changed } = controllerWith({});
  changed("a", "b");
  await step();
  expect(written).toEqual([]);
  controller.start();
  await until(() => written.length === 2);
  changed("c");
  await until(() => written.length === 3);
  expect(namesOf(written)).toEqual(["a", "b", "c"]);
  await controller.stop();
  changed("d");
  await step();
  expect(written).toHaveLength(3);
});

test("a reconciler with initial keys is not called for every object at start", async () => {
  const asked: string[] = [];
  const {
    controller,
    written,
    view: store,
  } = controllerWith({
    keys: ({ name }) => {
      asked.push(name);
      return [seat(name)];
    },
    initialKeys: (_state, { view }) => [seat(`all of ${view.count("nodes")}`)],
  });
  store.apply(["a", "b"].map((name) => ({ resource: "nodes", namespace: "", name, object: named(name) })));
  controller.start();
  await until(() => written.length === 1);
  await controller.stop();
  expect(asked).toEqual([]);
  expect(written).toEqual([applying("all of 2")]);
});

test("a change does not wait for the initial keys", async () => {
  const { controller, written, changed } = controllerWith({}, { queue: { parallel: 1 } });
  changed("a", "b", "c", "d", "e", "f");
  controller.start();
  changed("new");
  await until(() => written.length === 7);
  await controller.stop();
  expect(namesOf(written).slice(0, 2)).toEqual(["a", "new"]);
});

test("reconcilers see an object's state before its change", async () => {
  const seen: (JsonObject | undefined)[] = [];
  const { controller, view } = controllerWith({
    keys: ({ before }) => {
      seen.push(before);
      return [];
    },
  });
  controller.start();
  const change = (object: JsonObject | undefined) => ({
    resource: "nodes",
    namespace: "",
    name: "a",
    object,
  });
  for (const object of [named("a"), { ...named("a"), b: 1 }, undefined])
    controller.changed(view.apply([change(object)]));
  await controller.stop();
  expect(seen).toEqual([undefined, named("a"), { ...named("a"), b: 1 }]);
});

test("an error in keys is logged", async () => {
  const { controller, logged, changed } = controllerWith({
    keys: () => {
      throw new Error("no keys");
    },
  });
  controller.start();
  changed("a");
  expect(logged[0]).toContain("no keys");
  await controller.stop();
});

test("a result may requeue its key", async () => {
  let results = 0;
  const { controller, changed } = controllerWith({
    reconcile: () => (++results < 3 ? { writes: [], requeueAfter: 0.001 } : { writes: [] }),
  });
  controller.start();
  changed("a");
  await until(() => results === 3);
  await controller.stop();
});

test("a key can depend on whether the writes of another key fail", async () => {
  let fails = true;
  const reconciled: string[] = [];
  const { controller, changed } = controllerWith(
    {
      reconcile: ({ name }, _state, { failure }) => {
        reconciled.push(`${name}: node ${failure?.(seat("a")) ?? "is fine"}`);
        return { writes: name === "a" ? [applying(name)] : [] };
      },
      failureKeys: ({ name }) => (name === "a" ? [seat("summary")] : []),
    },
    { write: async () => (fails ? { failed: "was refused" } : "done") },
  );
  controller.start();
  changed("a");
  await until(() => reconciled.includes("summary: node was refused"));
  fails = false;
  await until(() => reconciled.includes("summary: node is fine"));
  await controller.stop();
  // Only the transition counts, not every attempt.
  expect(reconciled.filter((one) => one.startsWith("summary"))).toHaveLength(2);
});

test("reconcilers receive tallies, and a changed tally is by default a change of its policy", async () => {
  const tally = { module: "seating", policy: { kind: "Seat", name: "one" }, outcomes: { applied: 4 } };
  const seen: unknown[] = [];
  const { controller, view } = controllerWith(
    {
      reconcile: (_key, _state, context) => {
        seen.push(context.tallies?.of("seating", tally.policy));
        return { writes: [] };
      },
    },
    { tallies: { of: () => tally } },
  );
  view.apply([{ resource: "seats.usher.dev", namespace: "", name: "one", object: named("one") }]);
  controller.start();
  await until(() => seen.length === 1);
  controller.talliesChanged([tally, { module: "seating", policy: { kind: "Seat", name: "deleted" } }]);
  await until(() => seen.length === 2);
  await step();
  expect(seen).toEqual([tally, tally]);
  await controller.stop();
});

test("a reconciler may define keys for changed tallies", async () => {
  const policy = { kind: "Seat", name: "one" };
  const reconciled: string[] = [];
  const { controller, view } = controllerWith({
    tallyKeys: ({ name }) => [seat(`tallies of ${name}`)],
    reconcile: ({ name }: SeatKey) => {
      reconciled.push(name);
      return { writes: [] };
    },
  });
  view.apply([{ resource: "seats.usher.dev", namespace: "", name: "one", object: named("one") }]);
  controller.start();
  await until(() => reconciled.length === 1);
  controller.talliesChanged([{ module: "seating", policy }]);
  await until(() => reconciled.length === 2);
  await step();
  expect(reconciled[1]).toBe("tallies of one");
  expect(reconciled).toHaveLength(2);
  await controller.stop();
});
