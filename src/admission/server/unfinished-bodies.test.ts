import fc from "fast-check";
import { expect, test } from "vitest";
import { type Sender, UnfinishedBodies } from "./unfinished-bodies.ts";

function senders(names: readonly string[]) {
  const ended: string[] = [];
  const made = new Map<string, Sender>();
  for (const name of names) made.set(name, { close: () => void ended.push(name) });
  const of = (name: string): Sender => made.get(name) ?? { close: () => undefined };
  return { ended, of };
}

test("the oldest gives way, and as many as it takes", () => {
  const { ended, of } = senders(["a", "b", "c"]);
  const closed: number[] = [];
  const unfinished = new UnfinishedBodies(100, (bytes) => closed.push(bytes));
  unfinished.hold(of("a"), 10);
  unfinished.hold(of("b"), 40);
  unfinished.hold(of("a"), 60);
  expect(ended).toEqual([]);
  unfinished.hold(of("c"), 1);
  expect(ended).toEqual(["a"]);
  unfinished.hold(of("c"), 61);
  expect(ended).toEqual(["a", "b"]);
  unfinished.hold(of("c"), 101);
  expect(ended).toEqual(["a", "b", "c"]);
  expect(closed).toEqual([60, 40, 101]);
});

test("what is released counts no longer, and who grows is counted once", () => {
  const { ended, of } = senders(["a", "b"]);
  const unfinished = new UnfinishedBodies(100, () => undefined);
  for (const bytes of [10, 50, 100]) unfinished.hold(of("a"), bytes);
  unfinished.release(of("a"));
  unfinished.release(of("a"));
  unfinished.hold(of("b"), 100);
  expect(ended).toEqual([]);
});

test("never holds more than the limit, in any order of requests", () => {
  const step = fc.tuple(fc.constantFrom("a", "b", "c", "d"), fc.integer({ min: 0, max: 60 }), fc.boolean());
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const held = new Map<string, number>();
      const made = new Map<string, Sender>();
      for (const name of ["a", "b", "c", "d"]) made.set(name, { close: () => void held.delete(name) });
      const unfinished = new UnfinishedBodies(100, () => undefined);
      for (const [name, bytes, done] of steps) {
        const sender = made.get(name) as Sender;
        if (done) {
          held.delete(name);
          unfinished.release(sender);
        } else {
          held.set(name, bytes);
          unfinished.hold(sender, bytes);
        }
        const sum = [...held.values()].reduce((all, one) => all + one, 0);
        expect(sum).toBeLessThanOrEqual(100);
      }
    }),
  );
});
