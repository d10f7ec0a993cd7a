import { describe, expect, test } from "vitest";
import { came, clusterPolicy, namespace } from "../../../../test/builders/policy.ts";
import type { CountedTally } from "../../../core/evaluate/effects.ts";
import { Facts, type Need } from "../../../core/evaluate/need.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { ReconcileResult } from "../../../core/module/reconciler.ts";
import { Store } from "../../../core/view/store.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";
import { statusReconciler } from "./reconcile-status.ts";

const RESOURCE = "clusterpodschedulingpolicies.kupid.gardener.cloud";
const NOW = Date.UTC(2026, 10, 15, 12);
const LATER = NOW + 60_000;
const reconciler = statusReconciler("placement", [clusterPodSchedulingPolicy, podSchedulingPolicy]);
const live: Need = { get: { resource: RESOURCE, name: "etcd" }, live: true };

function stored(spec: JsonObject, status?: JsonObject): JsonObject {
  const policy = clusterPolicy("etcd", spec);
  return {
    ...policy,
    metadata: { name: "etcd", uid: "u1", generation: 3, resourceVersion: "77" },
    ...(status === undefined ? {} : { status }),
  };
}

const GOOD = { podSelector: {}, namespaceSelector: {}, nodeSelector: { pool: "etcd" } };

function planFor(
  object: JsonObject | undefined,
  tally?: Partial<CountedTally>,
  now = NOW,
  view = new Store(),
): ReconcileResult {
  const facts = new Facts();
  facts.set(live, object === undefined ? { absent: "NotFound" } : { found: object, complete: true });
  const counted = tally === undefined ? undefined : ({ outcomes: {}, ...tally } as CountedTally);
  const result = reconciler.plan(`${RESOURCE} /etcd`, {
    view,
    facts,
    now,
    tallies: { of: () => counted },
  });
  if ("need" in result) throw new Error("asked again");
  return result;
}

function statusIn({ writes }: ReconcileResult): JsonObject {
  const [write] = writes;
  if (write === undefined || !("status" in write)) throw new Error("no status was planned");
  return write.status;
}

describe("keys", () => {
  test("one for each policy that is there, none for what is gone or not ours", () => {
    const change = { resource: RESOURCE, namespace: "", name: "etcd", object: stored(GOOD) };
    expect(reconciler.keys(change, new Store())).toEqual([`${RESOURCE} /etcd`]);
    expect(reconciler.keys({ ...change, object: undefined }, new Store())).toEqual([]);
    expect(reconciler.keys({ ...change, resource: "namespaces" }, new Store())).toEqual([]);
  });
});

describe("plan", () => {
  test("asks for the stored policy, past every cache", () => {
    const context = { view: new Store(), facts: new Facts(), now: NOW };
    expect(reconciler.plan(`${RESOURCE} /etcd`, context)).toEqual({ need: [live] });
  });

  test("a policy that is gone, and a key of nobody, need nothing", () => {
    expect(planFor(undefined).writes).toEqual([]);
    expect(reconciler.plan("pods shop/x", { view: new Store(), facts: new Facts(), now: NOW })).toEqual({
      writes: [],
    });
  });

  test("a policy that can't be read is looked at again, not forgotten", () => {
    const facts = new Facts();
    facts.set(live, { failed: "the API server answered 503" });
    expect(() => reconciler.plan(`${RESOURCE} /etcd`, { view: new Store(), facts, now: NOW })).toThrow("503");
  });

  test("writes what the policy came to, bound to the version that was read", () => {
    const plan = planFor(stored(GOOD), {
      outcomes: { matched: 5, applied: 4, skipped: 1 },
      lastApplied: NOW - 1_000,
    });
    expect(plan.writes).toEqual([
      {
        of: { resource: RESOURCE, name: "etcd" },
        resourceVersion: "77",
        status: {
          observedGeneration: 3,
          matched: 5,
          applied: 4,
          skipped: 1,
          failed: 0,
          lastApplied: "2026-11-15T11:59:59Z",
          conditions: [
            {
              type: "Valid",
              status: "True",
              reason: "Usable",
              message: "the policy is in use",
              lastTransitionTime: "2026-11-15T12:00:00Z",
              observedGeneration: 3,
            },
            {
              type: "Effective",
              status: "True",
              reason: "InEffect",
              message: "objects that it selects get what it wants",
              lastTransitionTime: "2026-11-15T12:00:00Z",
              observedGeneration: 3,
            },
          ],
        },
      },
    ]);
  });

  test("is content with a status that says so already, however much later", () => {
    const status = statusIn(planFor(stored(GOOD), { outcomes: { matched: 1 } }));
    expect(planFor(stored(GOOD, status), { outcomes: { matched: 1 } }, LATER).writes).toEqual([]);
    expect(planFor(stored(GOOD, status), { outcomes: { matched: 2 } }, LATER).writes).toHaveLength(1);
  });

  test("names what is wrong, since when, and keeps the time of the last change", () => {
    const fine = statusIn(planFor(stored(GOOD), { outcomes: { applied: 1 }, lastApplied: NOW }));
    const bad = { ...GOOD, nodeSelector: { pool: "not a label value" } };
    const status = statusIn(planFor(stored(bad, fine), undefined, LATER));
    expect(status).toMatchObject({
      lastApplied: "2026-11-15T12:00:00Z",
      conditions: [
        { status: "False", reason: "Invalid", lastTransitionTime: "2026-11-15T12:01:00Z" },
        { type: "Effective", status: "False", reason: "Invalid", lastTransitionTime: "2026-11-15T12:01:00Z" },
      ],
    });
    expect(JSON.stringify(status)).toContain("spec.nodeSelector.pool");
  });

  test("a doubt is told without making the policy invalid", () => {
    const status = statusIn(planFor(stored({ podSelector: {}, nodeSelector: { a: "b" } })));
    expect(status).toMatchObject({
      conditions: [
        { status: "True", reason: "Doubtful" },
        { status: "False", reason: "SelectsNothing" },
      ],
    });
    expect(JSON.stringify(status)).toContain("namespaceSelector");
  });

  test("says where the policy could not have its way, and remembers it over a change of leader", () => {
    const conflict = { object: "Pod shop/web", field: "spec.nodeSelector.pool", message: "m", at: NOW };
    const status = statusIn(planFor(stored(GOOD), { outcomes: { skipped: 1 }, conflicts: [conflict] }));
    const told = [
      { object: "Pod shop/web", field: "spec.nodeSelector.pool", message: "m", time: "2026-11-15T12:00:00Z" },
    ];
    expect(status["conflicts"]).toEqual(told);
    expect(statusIn(planFor(stored(GOOD, status), { outcomes: { matched: 9 } }))["conflicts"]).toEqual(told);
  });

  test.each<[string, JsonObject, readonly JsonObject[], string]>([
    [
      "no namespace has the label",
      { ...GOOD, namespaceSelector: { matchLabels: { team: "a" } } },
      [],
      "NoNamespace",
    ],
    [
      "a namespace has it",
      { ...GOOD, namespaceSelector: { matchLabels: { team: "a" } } },
      [namespace("shop", { team: "a" })],
      "InEffect",
    ],
    [
      "there is nothing to give",
      { podSelector: {}, namespaceSelector: {} },
      [namespace("shop")],
      "NoCriteria",
    ],
  ])("%s", (_what, spec, namespaces, reason) => {
    const view = new Store();
    view.serve("namespaces");
    view.apply([namespace("other"), ...namespaces].map(came));
    expect(planFor(stored(spec), undefined, NOW, view).writes).toMatchObject([
      { status: { conditions: [{ type: "Valid" }, { type: "Effective", reason }] } },
    ]);
  });
});
