import fc from "fast-check";
import { expect, test } from "vitest";
import type { CountedTally, Tally } from "../../core/decision/tally.ts";
import { decodeTallies, encodeTallies, mergeTallies, Tallies } from "./tallies.ts";

function tally(name: string, outcomes: Tally["outcomes"], changes: Partial<Tally["policy"]> = {}): Tally {
  return { module: "placement", policy: { kind: "Policy", name, uid: "u", ...changes }, outcomes };
}

test("sums counts and keeps the last applied time", () => {
  const tallies = new Tallies();
  tallies.add([tally("a", { applied: 1 })], 100);
  tallies.add([tally("a", { same: 2 }), tally("b", { violated: 1 })], 200);
  tallies.add([tally("a", { applied: 3 }, { generation: 2 })], 300);
  expect(tallies.list()).toEqual([
    { ...tally("a", { applied: 4, same: 2 }, { generation: 2 }), lastApplied: 300 },
    tally("b", { violated: 1 }),
  ]);
  expect(tallies.changes).toBe(4);
});

test("one namespace can't push the conflicts of others out of a policy's status", () => {
  const tallies = new Tallies();
  const conflict = (object: string) => ({ object, field: "spec.x", message: "m" });
  tallies.add([{ ...tally("p", { skipped: 1 }), conflicts: [conflict("Pod victim/a")] }], 1);
  for (let i = 2; i < 50; i++)
    tallies.add([{ ...tally("p", { skipped: 1 }), conflicts: [conflict(`Pod loud/${i}`)] }], i);
  expect(tallies.list()[0]?.conflicts?.map(({ object }) => object)).toEqual([
    "Pod loud/49",
    "Pod loud/48",
    "Pod loud/47",
    "Pod loud/46",
    "Pod victim/a",
  ]);
});

test("keeps the latest conflicts, each field of an object once", () => {
  const tallies = new Tallies();
  const conflict = (object: string, message = "m") => ({ object, field: "spec.x", message });
  for (const [i, object] of ["a", "b", "c", "a", "d", "e", "f"].entries())
    tallies.add([{ ...tally("p", { skipped: 1 }), conflicts: [conflict(object, `${"m".repeat(300)}`)] }], i);
  const [kept] = tallies.list();
  expect(kept?.conflicts?.map(({ object, at }) => `${object}${at}`)).toEqual(["f6", "e5", "d4", "a3", "c2"]);
  expect(kept?.conflicts?.[0]?.message).toHaveLength(256);
  expect(decodeTallies('[["m","K",null,"n",null,null,null,[1],[["o","f","m","soon"],["o"],7]]]')).toEqual([
    { module: "m", policy: { kind: "K", name: "n" }, outcomes: { applied: 1 } },
  ]);
});

test("a policy that was deleted and created again starts at zero", () => {
  const tallies = new Tallies();
  tallies.add([tally("a", { applied: 5 })], 1);
  tallies.add([tally("a", { applied: 1 }, { uid: "another" })], 2);
  expect(tallies.list().map(({ outcomes }) => outcomes.applied)).toEqual([1, 5]);
});

test("evicts the least recently counted policies", () => {
  const tallies = new Tallies(2);
  tallies.add([tally("a", { same: 1 }), tally("b", { same: 1 })], 1);
  tallies.add([tally("a", { same: 1 }), tally("c", { same: 1 })], 2);
  expect(tallies.list().map(({ policy }) => policy.name)).toEqual(["c", "a"]);
});

const OUTCOMES = [
  "applied",
  "same",
  "skipped",
  "violated",
  "would-violate",
  "authorized",
  "failed",
  "matched",
] as const;

const anyTally: fc.Arbitrary<CountedTally> = fc
  .record({
    name: fc.constantFrom("a", "b", 'c\n"ü'),
    namespace: fc.option(fc.constantFrom("shop", "bank")),
    uid: fc.option(fc.constantFrom("u1", "u2")),
    generation: fc.option(fc.nat(9)),
    lastApplied: fc.option(fc.integer({ min: 1, max: 2_000_000_000_000 })),
    counts: fc.dictionary(fc.constantFrom(...OUTCOMES), fc.integer({ min: 1, max: 1_000_000 })),
    conflict: fc.option(
      fc.record({
        object: fc.constantFrom("Pod shop/a", "Pod shop/b", "Pod bank/a", "Node a"),
        field: fc.constantFrom("spec.x", 'spec["y\n"]'),
        message: fc.string({ maxLength: 5 }),
        at: fc.nat(9),
      }),
    ),
  })
  .map(({ name, namespace, uid, generation, lastApplied, counts, conflict }) => ({
    module: "placement",
    policy: {
      kind: "Policy",
      name,
      ...(namespace === null ? {} : { namespace }),
      ...(uid === null ? {} : { uid }),
      ...(generation === null ? {} : { generation }),
    },
    outcomes: { ...counts },
    ...(lastApplied === null ? {} : { lastApplied }),
    ...(conflict === null ? {} : { conflicts: [conflict] }),
  }));

test("merging is commutative and associative", () => {
  fc.assert(
    fc.property(fc.array(fc.array(anyTally), { maxLength: 4 }), (decoded) => {
      const all = mergeTallies(decoded);
      const numbers = (merged: Map<string, CountedTally>) =>
        new Map(
          [...merged]
            .map(
              ([key, { outcomes, lastApplied, policy, conflicts }]) =>
                [
                  key,
                  JSON.stringify([
                    OUTCOMES.map((one) => outcomes[one] ?? 0),
                    lastApplied,
                    policy.generation ?? 0,
                    conflicts,
                  ]),
                ] as const,
            )
            .sort(([a], [b]) => (a < b ? -1 : 1)),
        );
      expect(numbers(mergeTallies([...decoded].reverse()))).toEqual(numbers(all));
      const [first = [], ...rest] = decoded;
      expect(numbers(mergeTallies([first, mergeTallies(rest).values()]))).toEqual(numbers(all));
    }),
  );
});

test("decodes what it encodes", () => {
  fc.assert(
    fc.property(fc.array(anyTally), (tallies) => {
      const { text, left } = encodeTallies(tallies, 1_000_000);
      expect(left).toBe(0);
      expect(decodeTallies(text)).toEqual(tallies);
    }),
  );
});

test("omits tallies that do not fit, and counts them", () => {
  fc.assert(
    fc.property(fc.array(anyTally, { maxLength: 20 }), fc.nat(2_000), (tallies, most) => {
      const { text, left } = encodeTallies(tallies, most);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(Math.max(2, most));
      expect(decodeTallies(text)).toEqual(tallies.slice(0, tallies.length - left));
    }),
  );
});

test("skips tallies that it can't decode", () => {
  for (const text of ["", "{", "null", "{}", "7", '[1,null,{},["m"],["m","K",null,"n"]]'])
    expect(() => decodeTallies(text)).not.toThrow();
  expect(decodeTallies('[["m","K",null,"n",null,null,"soon",[1,-2,"x"]],3]')).toEqual([
    { module: "m", policy: { kind: "K", name: "n" }, outcomes: { applied: 1 } },
  ]);
  fc.assert(fc.property(fc.json(), (text) => void decodeTallies(text)));
});
