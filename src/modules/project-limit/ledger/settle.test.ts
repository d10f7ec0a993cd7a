import { describe, expect, test } from "vitest";
import { type Fact, Facts, type Need } from "../../../core/decision/need.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { ReconcileResult } from "../../../core/module/reconciler.ts";
import { Store } from "../../../core/view/store.ts";
import { BY_REQUESTER } from "../projects.ts";
import { type LimitSubject, ledgerName } from "../subject.ts";
import { EntryAges } from "./entry-ages.ts";
import { entriesIn, type LedgerEntry, ledgerOf, subjectIn, USAGES } from "./project-usage.ts";
import { LEDGERS } from "./reconcile-ledgers.ts";
import { settle } from "./settle.ts";

const ANN: LimitSubject = { username: "ann" };

function namespace(name: string, uid: string, requester: string | undefined): JsonObject {
  const annotations = requester === undefined ? {} : { "openshift.io/requester": requester };
  return { metadata: { name, uid, annotations }, status: { phase: "Active" } };
}

function viewOf(entries: readonly LedgerEntry[], seen: readonly JsonObject[], subject: LimitSubject) {
  const indexes = new Map([
    ["namespaces", [BY_REQUESTER]],
    [USAGES, LEDGERS.indexes ?? []],
  ]);
  const view = new Store(indexes);
  const name = ledgerName(subject);
  const ledger = { ...ledgerOf(subject, entries), metadata: { name, resourceVersion: "7" } };
  view.apply([
    { resource: USAGES, namespace: "", name, object: ledger },
    ...seen.map((object) => ({
      resource: "namespaces",
      namespace: "",
      name: String((object["metadata"] as JsonObject)["name"]),
      object,
    })),
  ]);
  return { view, ledger };
}

interface Case {
  readonly entries: readonly LedgerEntry[];
  readonly seen?: readonly JsonObject[];
  /** The namespaces in etcd; absent if none has the name. */
  readonly live?: (name: string) => Fact;
  readonly afterMs?: number;
  readonly subject?: LimitSubject;
}

/** The names that stay after the settler has seen the ledger and looked again after this time; `unwritten` if it writes nothing. */
function kept({ entries, seen = [], live, afterMs = 35_000, subject = ANN }: Case) {
  const { view, ledger } = viewOf(entries, seen, subject);
  const key = { kind: "ledger", name: ledgerName(subject) } as const;
  const ages = new EntryAges();
  const reads: string[] = [];
  const at = (elapsed: number, now: number) => {
    const facts = new Facts();
    for (;;) {
      const result = settle(key, ages, { view, facts, now, elapsed });
      if (!("need" in result)) return result;
      for (const need of result.need as readonly Extract<Need, { get: unknown }>[]) {
        const { resource, name } = need.get;
        if (resource === "namespaces") reads.push(name);
        const absent: Fact = { absent: "NotFound" };
        const found: Fact = { found: ledger, complete: true };
        facts.set(need, resource === USAGES ? found : (live?.(name) ?? absent));
      }
    }
  };
  // The wall clock is changed by an hour in between, and back.
  const first = at(1_000, 3_600_000);
  const second = at(1_000 + afterMs, 0);
  const [write] = second.writes;
  if (write !== undefined && "delete" in write && entries.length > 0)
    return { first, second, reads, left: [] };
  const value = write !== undefined && "patch" in write ? write.patch[0] : undefined;
  const left =
    value !== undefined && "value" in value ? entriesIn({ spec: { entries: value.value } }) : undefined;
  return { first, second, reads, left: left?.map(({ name }) => name) ?? "unwritten" };
}

const found = (object: JsonObject): Fact => ({ found: object, complete: true });

describe("an entry is released", () => {
  test.each<[string, Case, readonly string[] | "unwritten"]>([
    ["if no namespace was created", { entries: [{ name: "a", uid: "1" }] }, []],
    ["not 1 ms before its time", { entries: [{ name: "a", uid: "1" }], afterMs: 34_999 }, "unwritten"],
    [
      "not by a read that failed",
      { entries: [{ name: "a", uid: "1" }], live: () => ({ failed: "etcd is down" }) },
      "unwritten",
    ],
    [
      "not by an API server that serves no namespaces",
      { entries: [{ name: "a", uid: "1" }], live: () => ({ absent: "NotServed" }) },
      "unwritten",
    ],
    [
      "beside one whose read failed",
      {
        entries: [
          { name: "a", uid: "1" },
          { name: "b", uid: "2" },
        ],
        live: (name) => (name === "a" ? { failed: "no" } : { absent: "NotFound" }),
      },
      ["a"],
    ],
    [
      "not while the view has it",
      { entries: [{ name: "a", uid: "1" }], seen: [namespace("a", "1", "ann")] },
      "unwritten",
    ],
    [
      "not if etcd has it and the view does not yet",
      { entries: [{ name: "a", uid: "1" }], live: (name) => found(namespace(name, "1", "ann")) },
      "unwritten",
    ],
    [
      "if the namespace has another uid",
      { entries: [{ name: "a", uid: "1" }], live: (name) => found(namespace(name, "2", "ann")) },
      [],
    ],
    [
      "if the requester is another user by now",
      { entries: [{ name: "a", uid: "1" }], live: (name) => found(namespace(name, "1", "bob")) },
      [],
    ],
    [
      "not if only the annotation is lost",
      { entries: [{ name: "a", uid: "1" }], live: (name) => found(namespace(name, "1", undefined)) },
      "unwritten",
    ],
    [
      "not if a ProjectRequest has its namespace, with any uid",
      { entries: [{ name: "a", request: "r" }], live: (name) => found(namespace(name, "9", "ann")) },
      "unwritten",
    ],
    [
      "if a ProjectRequest's name is another user's",
      { entries: [{ name: "a", request: "r" }], live: (name) => found(namespace(name, "9", "bob")) },
      [],
    ],
    [
      "if a ProjectRequest's name has its earlier namespace",
      {
        entries: [{ name: "a", request: "r", replaces: "9" }],
        live: (name) => found(namespace(name, "9", "ann")),
      },
      [],
    ],
    ["without a name, unread", { entries: [{ name: "", request: "r" }] }, []],
    [
      "not if a service account of the namespace has it",
      {
        subject: { serviceAccountsOf: "ci" },
        entries: [{ name: "a", uid: "1" }],
        live: (name) => found(namespace(name, "1", "system:serviceaccount:ci:bot")),
      },
      "unwritten",
    ],
    [
      "if a service account of another namespace has it",
      {
        subject: { serviceAccountsOf: "ci" },
        entries: [{ name: "a", uid: "1" }],
        live: (name) => found(namespace(name, "1", "system:serviceaccount:cd:bot")),
      },
      [],
    ],
  ])("%s", (_, given, expected) => {
    const { first, left } = kept(given);
    expect(first.writes).toEqual([]);
    expect(left).toEqual(expected);
  });

  test("with a condition, a count, and a time for the next look", () => {
    const { first, second, reads } = kept({ entries: [{ name: "a", uid: "1" }] });
    expect(first.requeueAfter).toBe(35);
    expect(second.writes).toMatchObject([{ resourceVersion: "7" }]);
    expect(second.counts).toEqual([
      { metric: "usher_project_limit_settlements_total", labels: {}, by: 1 },
      { metric: "usher_project_limit_unused_reservations_total", labels: {}, by: 1 },
    ]);
    expect(reads).toEqual(["a"]);
  });

  test("as unused only if its namespace was never seen, and then the ledger is deleted with its last entry", () => {
    const entries = [
      { name: "came", uid: "1" },
      { name: "never", uid: "2" },
    ];
    const { view, ledger } = viewOf(entries, [], ANN);
    const settled = (stored: readonly LedgerEntry[], ended: readonly LedgerEntry[]) => {
      const ages = new EntryAges();
      const key = { kind: "ledger", name: ledgerName(ANN) } as const;
      const facts = new Facts();
      for (const { name } of entries)
        facts.set({ get: { resource: "namespaces", name }, live: true }, { absent: "NotFound" });
      const object = { ...ledgerOf(ANN, stored), metadata: ledger.metadata };
      facts.set({ get: { resource: USAGES, name: key.name }, live: true }, found(object));
      settle(key, ages, { view, facts, now: 0, elapsed: 0 });
      for (const entry of ended) ages.ended(key.name, entry);
      const { writes, counts } = settle(key, ages, {
        view,
        facts,
        now: 0,
        elapsed: 35_000,
      }) as ReconcileResult<never>;
      return { writes: writes.flatMap(Object.keys), counts: counts?.map(({ by }) => by) };
    };
    const [came, never] = entries as [LedgerEntry, LedgerEntry];
    const [patched, removed] = [
      ["patch", "of", "resourceVersion"],
      ["delete", "resourceVersion"],
    ];
    expect(settled(entries, [came])).toEqual({ writes: patched, counts: [2, 1] });
    expect(settled(entries, entries)).toEqual({ writes: patched, counts: [2] });
    expect(settled(entries, [])).toEqual({ writes: removed, counts: [2, 2] });
    expect(settled([never], [])).toEqual({ writes: removed, counts: [1, 1] });
    // Another entry was added since: it stays.
    expect(settled([...entries, { name: "new", uid: "3" }], [])).toEqual({ writes: patched, counts: [2, 2] });
  });

  test("by reading at most 50 at a time, and the rest immediately after", () => {
    const entries = Array.from({ length: 5_000 }, (_, i) => ({ name: `n${i}`, uid: `${i}` }));
    const { second, reads, left } = kept({ entries });
    expect(reads).toHaveLength(50);
    expect(left).toHaveLength(4_950);
    expect(second.enqueue).toHaveLength(1);
  });

  test("an empty ledger is deleted after ten minutes", () => {
    expect(kept({ entries: [], afterMs: 599_999 }).second).toMatchObject({ writes: [], requeueAfter: 0.001 });
    expect(kept({ entries: [], afterMs: 600_000 }).second.writes).toMatchObject([
      { delete: {}, resourceVersion: "7" },
    ]);
  });
});

test.each<LimitSubject>([
  ANN,
  { serviceAccountsOf: "ci" },
  { username: "system:serviceaccounts:ci" },
  { username: "" },
])("recognizes the subject %j from its ledger", (subject) => {
  expect(subjectIn(viewOf([], [], subject).ledger)).toEqual(subject);
});
