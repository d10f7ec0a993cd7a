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
])("%j in readable form", (need, text) => {
  expect(describeNeed(need)).toBe(text);
});

test("facts are found by their need, and an absent one is not a failure", () => {
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

test("once closed, unmet needs have failed, and are listed as missing", () => {
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

test("an optional absent fact is not listed as missing; a failed one is", () => {
  const facts = new Facts();
  const ledger = { get: { resource: "ledgers", name: "l" }, live: true, mayBeAbsent: true } as const;
  facts.set(ledger, { absent: "NotFound" });
  expect(facts.missing()).toEqual([]);
  for (const fact of [{ absent: "NotServed" }, { failed: "etcd is down" }] as const) {
    facts.set(ledger, fact);
    expect(facts.missing()).toEqual([ledger]);
  }
});
