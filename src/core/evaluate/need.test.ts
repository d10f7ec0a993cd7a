import { expect, test } from "vitest";
import { describeNeed, Facts, type Need } from "./need.ts";

const NODE: Need = { get: { resource: "nodes", name: "n" }, live: true };
const POD: Need = { get: { resource: "pods", namespace: "shop", name: "web" } };
const PODS: Need = { list: { resource: "pods", namespace: "shop" }, limit: 10, share: 0.5 };
const ACCESS: Need = { access: { user: "jane" } };

test.each<[Need, string]>([
  [NODE, "nodes n"],
  [POD, "pods shop/web"],
  [PODS, "list of pods in shop"],
  [{ list: { resource: "nodes" }, limit: 1, share: 1 }, "list of nodes"],
  [ACCESS, "access review"],
])("%j for people", (need, text) => {
  expect(describeNeed(need)).toBe(text);
});

test("facts are found by what was asked, and what is not there yet is not a failure", () => {
  const facts = new Facts();
  expect(facts.of(NODE)).toBeUndefined();
  facts.set(NODE, { found: 1, complete: true });
  expect(facts.of({ live: true, get: { name: "n", resource: "nodes" } })).toEqual({
    found: 1,
    complete: true,
  });
  expect(facts.of({ get: { resource: "nodes", name: "n" } })).toBeUndefined();
  facts.forget(NODE);
  expect(facts.of(NODE)).toBeUndefined();
  expect(facts.missing()).toEqual([]);
});

test("once closed, what is missing has failed, and is among the missing", () => {
  const facts = new Facts();
  facts.set(NODE, { found: 1, complete: true });
  facts.set(POD, { absent: "NotFound" });
  expect(facts.closed).toBe(false);
  facts.close("too late");
  expect(facts.closed).toBe(true);
  expect(facts.of(NODE)).toEqual({ found: 1, complete: true });
  expect(facts.of(ACCESS)).toEqual({ failed: "too late" });
  expect(facts.missing()).toEqual([POD, ACCESS]);
});

test("what may be absent and is absent is not among the missing; what failed is", () => {
  const facts = new Facts();
  const ledger = { get: { resource: "ledgers", name: "l" }, live: true, mayBeAbsent: true } as const;
  facts.set(ledger, { absent: "NotFound" });
  expect(facts.missing()).toEqual([]);
  for (const fact of [{ absent: "NotServed" }, { failed: "etcd is away" }] as const) {
    facts.set(ledger, fact);
    expect(facts.missing()).toEqual([ledger]);
  }
});
