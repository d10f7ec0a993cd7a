import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type JsonObject, listAt } from "../json.ts";
import { Store } from "./store.ts";
import type { Change, Index } from "./view.ts";

const byTeams: Index = {
  name: "team",
  values: (object) => listAt(object, "teams").filter((team) => typeof team === "string"),
};
const INDEXES = new Map([["pods", [byTeams]]]);

const NAMESPACES = ["", "a", "b"];
const NAMES = ["x", "y", "__proto__"];
const TEAMS = ["red", "blue", "constructor"];
const RESOURCES = ["pods", "nodes"];

const change: fc.Arbitrary<Change> = fc
  .record({
    resource: fc.constantFrom(...RESOURCES),
    namespace: fc.constantFrom(...NAMESPACES),
    name: fc.constantFrom(...NAMES),
    object: fc.option(
      fc.record({ teams: fc.array(fc.constantFrom(...TEAMS), { maxLength: 2 }), v: fc.nat(1) }),
      {
        nil: undefined,
      },
    ),
  })
  .map(({ object, ...where }) => ({
    ...where,
    object: object === undefined ? undefined : { name: `${where.namespace}|${where.name}`, ...object },
  }));
const changes = fc.array(change, { maxLength: 12 });

/** The expected content of a store, kept in the simplest way. */
type Model = Map<string, Change>;
const keyOf = ({ resource, namespace, name }: Change) => JSON.stringify([resource, namespace, name]);

function applied(model: Model, list: readonly Change[]): Model {
  const next = new Map(model);
  for (const one of list) {
    if (one.object === undefined) next.delete(keyOf(one));
    else next.set(keyOf(one), one);
  }
  return next;
}

const sorted = (objects: Iterable<JsonObject | undefined>) =>
  [...objects].map((one) => JSON.stringify(one)).sort();

function expectSame(store: Store, model: Model): void {
  const all = [...model.values()];
  for (const resource of RESOURCES) {
    const mine = all.filter((one) => one.resource === resource);
    expect(store.count(resource)).toBe(mine.length);
    expect(sorted(store.list(resource))).toEqual(sorted(mine.map(({ object }) => object)));
    for (const namespace of NAMESPACES) {
      const inside = mine.filter((one) => one.namespace === namespace);
      expect(sorted(store.list(resource, namespace))).toEqual(sorted(inside.map(({ object }) => object)));
      for (const name of NAMES) {
        const found = inside.find((one) => one.name === name)?.object;
        expect(store.get(resource, namespace, name)).toEqual(found);
      }
    }
    for (const team of TEAMS) {
      const teamed =
        resource === "pods" ? mine.filter(({ object }) => listAt(object, "teams").includes(team)) : [];
      expect(sorted(store.lookup(resource, "team", team))).toEqual(
        sorted(teamed.map(({ object }) => object)),
      );
    }
  }
}

test("any changes: as a plain list of objects would have it", () => {
  fc.assert(
    fc.property(changes, (list) => {
      const store = new Store(INDEXES);
      let model: Model = new Map();
      for (const one of list) {
        const before = model.get(keyOf(one))?.object;
        const real = store.apply([one]);
        model = applied(model, [one]);
        // A change has the previous object.
        const same = JSON.stringify(before) === JSON.stringify(one.object);
        expect(real).toEqual(same ? [] : [before === undefined ? one : { ...one, before }]);
      }
      expectSame(store, model);
      expect(new Store(INDEXES).apply(list).length).toBeLessThanOrEqual(list.length);
    }),
  );
});

test("a supposition and its base are independent, whatever either does later", () => {
  fc.assert(
    fc.property(changes, changes, changes, changes, (first, supposed, later, laterSupposed) => {
      const store = new Store(INDEXES);
      store.apply(first);
      const model = applied(new Map(), first);
      const other = store.with(supposed);
      const otherModel = applied(model, supposed);
      expectSame(store, model);
      expectSame(other, otherModel);
      store.apply(later);
      expectSame(other, otherModel);
      other.apply(laterSupposed);
      expectSame(store, applied(model, later));
      expectSame(other, applied(otherModel, laterSupposed));
    }),
  );
});

test("a supposition can be based on a supposition", () => {
  const pod = (v: number): Change => ({
    resource: "pods",
    namespace: "a",
    name: "x",
    object: { v, teams: ["red"] },
  });
  const node: Change = { resource: "nodes", namespace: "", name: "n", object: { v: 1 } };
  const store = new Store(INDEXES);
  store.apply([pod(1)]);
  const second = store.with([pod(2)]);
  const third = second.with([node]);
  second.apply([pod(3)]);
  third.apply([pod(4)]);
  const seen = [store, second, third].map((one) => one.get("pods", "a", "x")?.["v"]);
  expect(seen).toEqual([1, 3, 4]);
  expect([store, second, third].map((one) => one.count("nodes"))).toEqual([0, 0, 1]);
  expect([...third.lookup("pods", "team", "red")]).toEqual([{ v: 4, teams: ["red"] }]);
});

describe("no change", () => {
  const object = { a: { b: [1] } };
  const put: Change = { resource: "pods", namespace: "a", name: "x", object };

  test("ignores the same object, identical or equal, in any order of keys", () => {
    const store = new Store();
    expect(store.apply([put, put])).toEqual([put]);
    expect(store.apply([{ ...put, object: { a: { b: [1] } } }])).toEqual([]);
    expect(store.get("pods", "a", "x")).toBe(object);
  });

  test("ignores a repeated deletion", () => {
    const store = new Store();
    expect(store.apply([{ ...put, object: undefined }])).toEqual([]);
    store.apply([put]);
    expect(store.apply([{ ...put, object: undefined }])).toHaveLength(1);
    expect(store.apply([{ ...put, object: undefined }])).toEqual([]);
  });
});

describe("served", () => {
  test("an empty resource is not an unknown one", () => {
    const store = new Store();
    expect(store.served("nodes")).toBe(false);
    store.serve("nodes");
    expect(store.served("nodes")).toBe(true);
    expect(store.count("nodes")).toBe(0);
    expect([...store.list("nodes")]).toEqual([]);
  });

  test("serving a resource again keeps its objects", () => {
    const store = new Store();
    store.apply([{ resource: "pods", namespace: "", name: "x", object: {} }]);
    store.serve("pods");
    expect(store.count("pods")).toBe(1);
  });

  test("a resource that is served only in a supposition is not served here", () => {
    const store = new Store();
    const other = store.with([{ resource: "pods", namespace: "", name: "x", object: {} }]);
    expect([store.served("pods"), other.served("pods")]).toEqual([false, true]);
    other.serve("nodes");
    expect(store.served("nodes")).toBe(false);
  });

  test("an undeclared index or resource is empty", () => {
    expect([...new Store().lookup("pods", "team", "red")]).toEqual([]);
    expect([...new Store(INDEXES).lookup("pods", "nope", "red")]).toEqual([]);
  });
});
