// Every order of reservations, creations, crashes, lagging watches and settlements: never more than the limit, and nothing leaks.
import fc from "fast-check";
import { expect, test } from "vitest";
import { LedgerWorld } from "../../../../test/support/project-limit/ledger-world.ts";
import { USAGES } from "./project-usage.ts";

type Step = readonly [what: keyof LedgerWorld, ...args: readonly (string | number)[]];

const name = fc.constantFrom("a", "a", "b", "c");
const replica = fc.nat(2);
const which = fc.nat(4);
const watch = fc.constantFrom("namespaces", USAGES);
const kind = fc.constantFrom("Namespace", "ProjectRequest");
const of = (weight: number, arbitrary: fc.Arbitrary<Step>) => ({ weight, arbitrary });

const step: fc.Arbitrary<Step> = fc.oneof(
  of(2, fc.tuple(fc.constant("ask" as const), replica, name, kind)),
  of(6, fc.tuple(fc.constant("admit" as const), replica, name, kind)),
  of(8, fc.tuple(fc.constant("proceed" as const), which)),
  of(1, fc.tuple(fc.constant("lose" as const), which)),
  of(1, fc.tuple(fc.constant("intrude" as const), name)),
  of(3, fc.tuple(fc.constant("terminate" as const), name)),
  of(3, fc.tuple(fc.constant("vanish" as const), name)),
  of(2, fc.tuple(fc.constant("observe" as const), replica, fc.constantFrom(1, 2, 3, 99))),
  of(3, fc.tuple(fc.constant("observe" as const), replica, fc.constantFrom(1, 2, 99), watch)),
  of(1, fc.tuple(fc.constant("pass" as const), fc.constantFrom(100, 5_000, 30_000))),
  of(2, fc.tuple(fc.constant("sweep" as const))),
  of(4, fc.tuple(fc.constant("sweepAfter" as const), fc.constantFrom(0, 6_000, 20_000, 36_000))),
  of(1, fc.tuple(fc.constant("elect" as const), replica)),
);

function run(world: LedgerWorld, [what, ...args]: Step): void {
  (world[what] as (...values: typeof args) => void).call(world, ...args);
}

const histories = fc.record({
  limit: fc.integer({ min: 0, max: 2 }),
  replicas: fc.integer({ min: 1, max: 3 }),
  owned: fc.uniqueArray(name, { maxLength: 2 }),
  steps: fc.array(step, { maxLength: 60 }),
});

const RUNS = Number(process.env["USHER_FUZZ_RUNS"] ?? 4_000);

test("never exceeds the limit, for any events in any order", () => {
  fc.assert(
    fc.property(histories, ({ limit, replicas, owned, steps }) => {
      const world = new LedgerWorld(limit, replicas, owned);
      for (const one of steps) {
        run(world, one);
        expect(world.counted, one.join(" ")).toBeLessThanOrEqual(limit);
      }
    }),
    { numRuns: RUNS },
  );
});

test("when all is quiet the ledger matches the existing namespaces, and the settler's state is empty", () => {
  fc.assert(
    fc.property(histories, ({ limit, replicas, owned, steps }) => {
      const world = new LedgerWorld(limit, replicas, owned);
      for (const one of steps) run(world, one);
      world.calm();
      expect(world.entries.filter((one) => !world.names.includes(one))).toEqual([]);
      expect(new Set(world.entries).size).toBe(world.entries.length);
      expect(world.remembered).toBe(0);
    }),
    { numRuns: RUNS / 4 },
  );
});
