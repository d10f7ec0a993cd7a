import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../json.ts";
import {
  type CompiledSelector,
  compileSelector,
  matches,
  requiredLabels,
} from "../kubernetes/selectors/label-selector.ts";
import { type RequiredLabel, SelectorIndex } from "./selector-index.ts";

interface Item {
  readonly id: number;
  readonly pod: CompiledSelector;
  readonly namespace: CompiledSelector;
  readonly requiredLabels: readonly RequiredLabel[];
}

const KEYS = ["app", "tier", "constructor"];
const VALUES = ["a", "b", ""];

const expression = fc.oneof(
  fc.record({
    key: fc.constantFrom(...KEYS),
    operator: fc.constantFrom("In", "NotIn"),
    values: fc.array(fc.constantFrom(...VALUES), { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ key: fc.constantFrom(...KEYS), operator: fc.constantFrom("Exists", "DoesNotExist") }),
);
const selector = fc
  .record({ matchExpressions: fc.array(expression, { maxLength: 3 }) })
  .map((written) => compileSelector(written, []).selector);
const labels: fc.Arbitrary<JsonObject> = fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES));

let ids = 0;
const item: fc.Arbitrary<Item> = fc.tuple(selector, selector).map(([pod, namespace]) => ({
  id: ids++,
  pod,
  namespace,
  requiredLabels: [
    ...requiredLabels(pod).map((one) => ({ of: "pod", ...one })),
    ...requiredLabels(namespace).map((one) => ({ of: "namespace", ...one })),
  ],
}));
const items = fc.array(item, { maxLength: 15 });

const matching = (list: Iterable<Item>, pod: JsonObject, namespace: JsonObject) =>
  [...list]
    .filter((one) => matches(one.pod, pod) && matches(one.namespace, namespace))
    .map(({ id }) => id)
    .sort();

test("the candidates include all matches, each once", () => {
  fc.assert(
    fc.property(items, labels, labels, (list, pod, namespace) => {
      const candidates = new SelectorIndex(list).candidates({ pod, namespace });
      expect(new Set(candidates).size).toBe(candidates.length);
      expect(matching(candidates, pod, namespace)).toEqual(matching(list, pod, namespace));
    }),
    { numRuns: 300 },
  );
});

test("after any additions and removals it finds what a new one finds", () => {
  const moves = fc.array(fc.tuple(fc.boolean(), fc.nat()), { maxLength: 25 });
  fc.assert(
    fc.property(items, items, moves, labels, labels, (first, others, script, pod, namespace) => {
      const index = new SelectorIndex(first);
      const inside = new Set(first);
      const pool = [...first, ...others];
      for (const [comes, pick] of script) {
        const one = pool[pick % Math.max(1, pool.length)];
        if (one === undefined || comes === inside.has(one)) continue;
        if (comes) index.add(one);
        else index.remove(one);
        if (comes) inside.add(one);
        else inside.delete(one);
      }
      expect(new Set(index.items)).toEqual(inside);
      const candidates = index.candidates({ pod, namespace });
      expect(new Set(candidates).size).toBe(candidates.length);
      for (const candidate of candidates) expect(inside.has(candidate)).toBe(true);
      const fresh = new SelectorIndex([...inside]).candidates({ pod, namespace });
      expect(matching(candidates, pod, namespace)).toEqual(matching(fresh, pod, namespace));
      // If the namespace is unknown, items that are indexed only by it are found by their kind of labels.
      const without = new Set([...index.candidates({ pod }), ...index.anchoredOn("namespace")]);
      for (const one of inside) if (matches(one.pod, pod)) expect(without.has(one)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

const wants = (...list: RequiredLabel[]) => ({ requiredLabels: list });
const pod = (key: string, ...values: string[]): RequiredLabel => ({ of: "pod", key, values });

describe("where items are indexed", () => {
  test("thousands that share a common label are not candidates for an object with only that label", () => {
    const many = Array.from({ length: 1_000 }, (_, i) => wants(pod("app", "etcd"), pod("shard", `s${i}`)));
    const index = new SelectorIndex(many);
    expect(index.candidates({ pod: { app: "etcd" } })).toEqual([]);
    expect(index.candidates({ pod: { app: "etcd", shard: "s7" } })).toEqual([many[7]]);
  });

  test("a value is rarer than the mere presence of a label", () => {
    const one = wants({ of: "pod", key: "app", values: undefined }, pod("shard", "s"));
    expect(new SelectorIndex([one]).candidates({ pod: { app: "x" } })).toEqual([]);
    expect(new SelectorIndex([one]).candidates({ pod: { shard: "s" } })).toEqual([one]);
  });

  test("an item without a required label is always a candidate", () => {
    const one = wants();
    const index = new SelectorIndex([one]);
    expect(index.candidates({})).toEqual([one]);
    expect(index.candidates({ pod: undefined })).toEqual([one]);
    expect([...index.anchoredOn("pod")]).toEqual([]);
    index.remove(one);
    expect(index.candidates({})).toEqual([]);
  });

  test("a label that is not a string has a key, and no value", () => {
    const any = wants({ of: "pod", key: "app", values: undefined });
    const value = wants(pod("app", "1"));
    expect(new SelectorIndex([any, value]).candidates({ pod: { app: 1 } })).toEqual([any]);
  });
});

describe("counts", () => {
  /** The index position of a new item with both required labels shows which of the two is considered rarer. */
  const filedUnder = (index: SelectorIndex<{ readonly requiredLabels: readonly RequiredLabel[] }>) => {
    const newcomer = wants(pod("left", "x"), pod("right", "y"));
    index.add(newcomer);
    const found = index.candidates({ pod: { left: "x" } }).includes(newcomer) ? "left" : "right";
    index.remove(newcomer);
    return found;
  };

  test("decrease when items are removed", () => {
    const busy = Array.from({ length: 5 }, () => wants(pod("left", "x")));
    const index = new SelectorIndex<{ readonly requiredLabels: readonly RequiredLabel[] }>([
      wants(pod("right", "y")),
    ]);
    expect(filedUnder(index)).toBe("left");
    for (const one of busy) index.add(one);
    expect(filedUnder(index)).toBe("right");
    for (const one of busy) index.remove(one);
    expect(filedUnder(index)).toBe("left");
  });

  test("do not decrease for unknown items", () => {
    const unknown = wants(pod("left", "x"));
    const index = new SelectorIndex<{ readonly requiredLabels: readonly RequiredLabel[] }>([
      wants(pod("left", "x")),
      wants(pod("left", "x")),
      wants(pod("right", "y")),
    ]);
    for (let i = 0; i < 5; i++) index.remove(unknown);
    expect(filedUnder(index)).toBe("right");
  });
});
