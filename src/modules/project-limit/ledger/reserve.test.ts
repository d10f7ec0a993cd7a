import { expect, test } from "vitest";
import { type Fact, Facts, type Need } from "../../../core/decision/need.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { type LimitSubject, ledgerName } from "../subject.ts";
import { type LedgerEntry, ledgerOf, MOST_ENTRIES, USAGES } from "./project-usage.ts";
import { MOST_OPEN, type Reservation, reserve } from "./reserve.ts";

const ANN: LimitSubject = { username: "ann" };
const ENTRY: LedgerEntry = { name: "new", uid: "9" };

const needOf = (name: string): Need => ({
  get: { resource: USAGES, name },
  live: true,
  mayBeAbsent: true,
});

function reserved(
  fact: Fact | undefined,
  limit: number,
  projects: readonly string[] = [],
  entry: LedgerEntry = ENTRY,
): Reservation {
  const facts = new Facts();
  if (fact !== undefined) facts.set(needOf(ledgerName(ANN)), fact);
  const seen = projects.map((name) => ({ name, uid: name, requester: "ann", terminating: false }));
  return reserve({ subject: ANN, limit, entry, projects: seen, facts });
}

function ledger(entries: readonly LedgerEntry[], subject = ANN): Fact {
  return { found: { ...ledgerOf(subject, entries), metadata: { resourceVersion: "7" } }, complete: true };
}

const others = (count: number): LedgerEntry[] =>
  Array.from({ length: count }, (_, i) => ({ name: `n${i}`, uid: `${i}` }));

test("a subject longer than a ledger's limit is stored by its prefix, and recognized", () => {
  const long: LimitSubject = { username: "x".repeat(4_095) + "😀".repeat(9) };
  const need = needOf(ledgerName(long));
  const reservation = (fact: Fact) => {
    const facts = new Facts();
    facts.set(need, fact);
    return reserve({ subject: long, limit: 2, entry: ENTRY, projects: [], facts });
  };
  const first = reservation({ absent: "NotFound" });
  const { object } = "commit" in first ? (first.commit ?? {}) : {};
  const subject = stringAt(object as JsonObject, "spec", "subject");
  expect(subject).toHaveLength(4_096);
  expect(subject?.isWellFormed()).toBe(true);
  expect(reservation(ledger(others(1), long))).toMatchObject({ used: { count: 1 } });
});

test("the ledger is read past every cache", () => {
  expect(reserved(undefined, 1)).toEqual({ need: needOf("u-ann") });
});

test("unwritten places refuse no request", () => {
  const written: Need = {
    get: { resource: USAGES, name: "u-ann" },
    live: true,
    mayBeAbsent: true,
    written: true,
  };
  const pending: Fact = { ...(ledger(others(2)) as Extract<Fact, { found: unknown }>), unwritten: true };
  const then = (fact: Fact | undefined) => {
    const facts = new Facts();
    facts.set(needOf("u-ann"), pending);
    if (fact !== undefined) facts.set(written, fact);
    return reserve({ subject: ANN, limit: 2, entry: ENTRY, projects: [], facts });
  };
  expect(then(undefined)).toEqual({ need: written });
  expect(then(ledger(others(2)))).toMatchObject({ full: { count: 2 } });
  expect(then(ledger(others(1)))).toMatchObject({ used: { count: 1 }, commit: { rests: written } });
  expect(then({ failed: "no answer" })).toEqual({ busy: "no answer" });
  // A place among them is as good as a written one: both are written together.
  expect(reserved(pending, 3)).toMatchObject({ used: { count: 2 }, commit: { rests: needOf("u-ann") } });
});

test("the first place creates the ledger", () => {
  expect(reserved({ absent: "NotFound" }, 1)).toMatchObject({
    used: { count: 0 },
    commit: {
      name: "u-ann",
      resourceVersion: undefined,
      object: { spec: { subject: "ann", entries: [ENTRY] } },
    },
  });
});

test("a further one is appended to the version that was read", () => {
  expect(reserved(ledger(others(2)), 3)).toMatchObject({
    commit: { resourceVersion: "7", object: { spec: { entries: [...others(2), ENTRY] } } },
  });
});

test("entries of the ledger and namespaces of the view count together", () => {
  expect(reserved(ledger(others(2)), 3, ["n1", "older"])).toEqual({
    full: { count: 3, names: ["n0", "n1", "older"] },
  });
});

test.each<[string, Fact]>([
  ["a failed read", { failed: "etcd is down" }],
  ["a kind that is not served", { absent: "NotServed" }],
  ["the ledger of another subject", ledger([], { username: "bob" })],
])("%s is not a free place", (_, fact) => {
  expect(reserved(fact, 9)).toMatchObject({ busy: expect.any(String) });
});

test("a reservation whose response was lost is found again, also if it was the last place", () => {
  expect(reserved(ledger([...others(1), ENTRY]), 2)).toMatchObject({ used: { count: 1 }, commit: undefined });
});

test("a client that repeats its request finds its place, also if all others are occupied", () => {
  const mine = { name: ENTRY.name, uid: "8" };
  expect(reserved(ledger([...others(1), mine]), 2)).toMatchObject({
    used: { count: 1 },
    commit: { object: { spec: { entries: [...others(1), mine, ENTRY] } } },
  });
  // For an existing namespace the limit is reported first, as upstream.
  expect(reserved(ledger([...others(1), mine]), 2, [ENTRY.name])).toMatchObject({ full: { count: 2 } });
});

test("requests for one name can't fill the ledger", () => {
  const many = Array.from({ length: 10 }, (_, i) => ({ name: ENTRY.name, uid: `u${i}` }));
  expect(reserved(ledger(many.slice(1)), 5)).toMatchObject({ commit: {} });
  expect(reserved(ledger(many), 5)).toMatchObject({ busy: expect.any(String) });
  const twice = others(MOST_ENTRIES / 2).flatMap(({ name }) => ["a", "b"].map((uid) => ({ name, uid })));
  expect(reserved(ledger(twice), MOST_ENTRIES)).toMatchObject({ busy: expect.any(String) });
});

test("reservations without a namespace are capped for each user; those with one are not", () => {
  const limit = 2 * MOST_OPEN;
  const shown = others(MOST_OPEN).map(({ name }) => name);
  expect(reserved(ledger(others(MOST_OPEN - 1)), limit)).toMatchObject({ commit: {} });
  expect(reserved(ledger(others(MOST_OPEN)), limit)).toEqual({
    busy: `${MOST_OPEN} requests of the same user are not over yet`,
  });
  expect(reserved(ledger(others(MOST_OPEN)), limit, shown)).toMatchObject({ commit: {} });
  // A request with a place keeps it, and a limit is reported before the cap.
  expect(reserved(ledger([...others(MOST_OPEN), ENTRY]), limit)).toMatchObject({ commit: undefined });
  expect(reserved(ledger(others(MOST_OPEN)), MOST_OPEN)).toMatchObject({ full: { count: MOST_OPEN } });
});

test("requests without a name have a place each", () => {
  const nameless = (count: number): LedgerEntry[] =>
    Array.from({ length: count }, (_, i) => ({ name: "", request: `r${i}` }));
  const next = { name: "", request: "next" };
  expect(reserved(ledger(nameless(1)), 2, [], next)).toMatchObject({ commit: {}, used: { count: 1 } });
  expect(reserved(ledger(nameless(2)), 2, [], next)).toMatchObject({ full: { count: 2 } });
  expect(reserved(ledger(nameless(20)), 30, [], next)).toMatchObject({ commit: {} });
});

test("a full ledger continues by best effort, without a write", () => {
  const full = ledger(others(MOST_ENTRIES));
  expect(reserved(full, MOST_ENTRIES + 1)).toMatchObject({
    used: { count: MOST_ENTRIES },
    commit: undefined,
  });
  expect(reserved(full, MOST_ENTRIES)).toMatchObject({ full: { count: MOST_ENTRIES } });
});

test("a full ledger with names and uids of full length fits into etcd", () => {
  const uid = "01234567-89ab-cdef-0123-456789abcdef";
  const longest = others(MOST_ENTRIES).map(({ name }) => ({
    name: name.padEnd(63, "x"),
    request: uid,
    replaces: uid,
  }));
  expect(JSON.stringify(ledgerOf(ANN, longest)).length).toBeLessThan(1_200_000);
});

test.each([
  { spec: null },
  { spec: { subject: "ann", entries: "x" } },
  { spec: { subject: "ann", entries: [null, 1, { name: 2 }] } },
])("handles the hostile ledger %j", (found) => {
  expect(() => reserved({ found, complete: true }, 1)).not.toThrow();
});
