import fc from "fast-check";
import { expect, test } from "vitest";
import {
  decodeObservations,
  encodeObservations,
  isObservable,
  MOST_OBSERVATIONS,
  mergeObservations,
  type Observation,
} from "./observations.ts";

const seen = (namespace: string, account: string, at: number): Observation => ({
  fields: { namespace, account },
  count: 1,
  first: at,
  last: at,
});

const observations = fc.array(
  fc.record({
    fields: fc.dictionary(fc.constantFrom("namespace", "account"), fc.constantFrom("a", "b", '"\n')),
    count: fc.integer({ min: 1, max: 9 }),
    first: fc.nat(9),
    last: fc.integer({ min: 10, max: 19 }),
  }),
);

test("counts each combination once, with its first and last time", () => {
  expect(mergeObservations([seen("a", "x", 5), seen("b", "x", 2)], [seen("a", "x", 3)])).toEqual([
    { fields: { namespace: "a", account: "x" }, count: 2, first: 3, last: 5 },
    seen("b", "x", 2),
  ]);
});

test("merging is independent of the order and of how it was put together", () => {
  fc.assert(
    fc.property(observations, observations, observations, (a, b, c) => {
      const all = mergeObservations(a, b, c);
      expect(mergeObservations(c, mergeObservations(b, a))).toEqual(all);
      expect(decodeObservations(encodeObservations(all))).toEqual(all);
    }),
  );
});

test("keeps a thousand, and one namespace can't evict the others", () => {
  const loud = Array.from({ length: 3_000 }, (_, i) => seen("loud", `sa-${i}`, 1_000 + i));
  const kept = mergeObservations([seen("quiet", "x", 1)], loud);
  expect(kept).toHaveLength(MOST_OBSERVATIONS);
  expect(kept).toContainEqual(seen("quiet", "x", 1));
  expect(kept).toContainEqual(seen("loud", "sa-2999", 3_999));
});

test("skips undecodable entries, and stays within the size of an object", () => {
  for (const text of ["", "{", "null", "[1]", '[{"a":1},1,1,1]', "[{},-1,1,1]", '[{},1,"x",1]'])
    expect(decodeObservations(text)).toEqual([]);
  fc.assert(fc.property(fc.json(), (text) => void decodeObservations(text)));
  const long = Array.from({ length: MOST_OBSERVATIONS }, (_, i) => seen("n", `${i}`.padEnd(1_000, "x"), i));
  expect(encodeObservations(long).length).toBeLessThanOrEqual(700_000);
});

test("a name that is too long is not stored, rather than cut", () => {
  expect(isObservable({ actor: "a".repeat(512) })).toBe(true);
  expect(isObservable({ actor: "a".repeat(513) })).toBe(false);
});
