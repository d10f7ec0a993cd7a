// Histories that random ones rarely find.
import { expect, test } from "vitest";
import { LedgerWorld } from "../../../../test/support/project-limit/ledger-world.ts";
import { USAGES } from "./project-usage.ts";

const NS = "Namespace";
const PR = "ProjectRequest";

/** Creates it, and every replica sees it. */
function create(world: LedgerWorld, name: string, kind: typeof NS | typeof PR): void {
  world.admit(0, name, kind);
  world.proceed(0);
  for (const replica of [0, 1, 2]) world.observe(replica, 99);
}

test.each([NS, PR] as const)("the place of a terminating %s is free immediately, and only once", (kind) => {
  const world = new LedgerWorld(1, 3);
  create(world, "a", kind);
  world.terminate("a");
  for (const replica of [0, 1, 2]) world.observe(replica, 99);
  create(world, "b", kind);
  expect(world.names).toEqual(["a", "b"]);
  create(world, "c", kind);
  expect(world.names).toEqual(["a", "b"]);
});

test.each([NS, PR] as const)(
  "a replica that still sees the old %s terminating counts the new one",
  (kind) => {
    const world = new LedgerWorld(1, 3);
    world.elect(2);
    create(world, "a", kind);
    // Its request is over.
    world.sweepAfter(35_000);
    world.terminate("a");
    for (const replica of [0, 1, 2]) world.observe(replica, 99);
    world.vanish("a");
    world.sweepAfter(0);
    expect(world.entries).toEqual([]);
    // Replica 0 knows only that the old one is terminating.
    world.admit(0, "a", kind);
    world.proceed(0);
    expect(world.counted).toBe(1);
    world.admit(1, "b", kind);
    world.proceed(0);
    expect(world.names).toEqual(["a"]);
  },
);

test("a namespace that was created and deleted frees its own entry, and not that of another request for its name", () => {
  const world = new LedgerWorld(2, 3);
  world.admit(0, "a", NS);
  world.admit(1, "a", NS);
  world.proceed(0);
  world.observe(0, 99);
  world.terminate("a");
  world.vanish("a");
  world.sweepAfter(0);
  expect(world.entries).toEqual(["a"]);
  world.admit(0, "b", NS);
  world.admit(0, "c", NS);
  while (world.underWay > 0) world.proceed(0);
  expect(world.names).toEqual(["a", "b"]);
});

test.each([NS, PR] as const)("a %s that appears 28 s after it was admitted has its place still", (kind) => {
  const world = new LedgerWorld(1, 1);
  world.admit(0, "a", kind);
  world.sweepAfter(28_000);
  world.admit(0, "b", kind);
  world.proceed(0);
  world.sweepAfter(36_000);
  expect([world.names, world.entries]).toEqual([["a"], ["a"]]);
});

test.each([NS, PR] as const)(
  "three forged reservations of a %s refuse a user without projects for 35 s, and then no longer",
  (kind) => {
    const world = new LedgerWorld(3, 1);
    for (const name of ["x", "y", "z"]) {
      world.admit(0, name, kind);
      world.lose(0);
    }
    world.sweepAfter(34_999);
    create(world, "a", kind);
    expect([world.names, world.entries]).toEqual([[], ["x", "y", "z"]]);
    world.sweepAfter(1);
    for (const name of ["a", "b", "c", "d"]) create(world, name, kind);
    expect(world.names).toEqual(["a", "b", "c"]);
  },
);

test.each([NS, PR] as const)(
  "the place of a %s that is never created is free after 35 s, also after two crashes",
  (kind) => {
    const world = new LedgerWorld(1, 3);
    world.admit(0, "a", kind);
    world.lose(0);
    world.sweepAfter(30_000);
    world.elect(1);
    world.sweepAfter(34_999);
    expect(world.entries).toEqual(["a"]);
    world.elect(2);
    world.sweepAfter(35_000);
    expect(world.entries).toEqual([]);
  },
);

test.each([
  [NS, NS],
  [PR, PR],
  [NS, PR],
  [PR, NS],
] as const)("AlreadyExists: after a %s a %s of the same name leaves one entry", (first, second) => {
  const world = new LedgerWorld(3, 1);
  create(world, "a", first);
  world.admit(0, "a", second);
  world.proceed(0);
  expect(world.entries).toEqual(["a", "a"]);
  world.sweepAfter(35_000);
  expect(world.entries).toEqual(["a"]);
});

test("a name that another user has is released", () => {
  const world = new LedgerWorld(3, 1);
  world.intrude("a");
  for (const kind of [NS, PR] as const) {
    world.admit(0, "a", kind);
    world.proceed(0);
  }
  world.sweepAfter(35_000);
  expect(world.entries).toEqual([]);
});

test("a late-seen deletion of an earlier namespace frees no place of a request for its name", () => {
  const world = new LedgerWorld(1, 2, ["a"]);
  world.terminate("a");
  world.vanish("a");
  world.observe(1, 99);
  // Replica 1 knows that the old one is gone, and the leader sees the new entry first.
  world.admit(1, "a", PR);
  world.observe(0, 99, USAGES);
  world.observe(0, 99, "namespaces");
  world.sweepAfter(0);
  expect(world.entries).toEqual(["a"]);
  world.admit(1, "b", PR);
  while (world.underWay > 0) world.proceed(0);
  expect(world.names).toEqual(["a"]);
});
