import { describe, expect, test } from "vitest";
import { came, clusterPolicy, namespace } from "../../../../test/builders/policy.ts";
import { Facts, type Need } from "../../../core/decision/need.ts";
import type { CountedTally } from "../../../core/decision/tally.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import type { ReconcileResult } from "../../../core/module/reconciler.ts";
import { Store } from "../../../core/view/store.ts";
import type { Change } from "../../../core/view/view.ts";
import { placement } from "../index.ts";
import { placementReconciler, type StatusKey } from "../reconciler.ts";

const RESOURCE = "clusterpodschedulingpolicies.kupid.gardener.cloud";
const NOW = Date.UTC(2026, 10, 15, 12);
const LATER = NOW + 60_000;
const reconciler = placementReconciler(() => placement);
const STATUS: StatusKey = { kind: "status", resource: RESOURCE, namespace: "", name: "etcd" };
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

function reconciled(
  object: JsonObject | undefined,
  tally?: Partial<CountedTally>,
  now = NOW,
  view = new Store(),
): ReconcileResult {
  const facts = new Facts();
  facts.set(live, object === undefined ? { absent: "NotFound" } : { found: object, complete: true });
  const counted = tally === undefined ? undefined : ({ outcomes: {}, ...tally } as CountedTally);
  const result = reconciler.reconcile(STATUS, reconciler.initialState(), {
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
  if (write === undefined || !("status" in write)) throw new Error("no status was written");
  return write.status;
}

describe("keys", () => {
  test("the status of each policy that exists, and a drift scan for every change of one", () => {
    const change = { resource: RESOURCE, namespace: "", name: "etcd", object: stored(GOOD) };
    const keysOf = (one: Change) => reconciler.keys(one, reconciler.initialState(), { view: new Store() });
    const scan = { kind: "drift-scan" };
    expect(keysOf(change)).toEqual([STATUS, scan]);
    expect(keysOf({ ...change, object: undefined })).toEqual([scan]);
    expect(keysOf({ ...change, resource: "namespaces" })).toEqual([]);
  });
});

describe("reconcile", () => {
  test("needs the stored policy", () => {
    const context = { view: new Store(), facts: new Facts(), now: NOW };
    expect(reconciler.reconcile(STATUS, reconciler.initialState(), context)).toEqual({ need: [live] });
  });

  test("a deleted policy, and a key of another resource, need nothing", () => {
    expect(reconciled(undefined).writes).toEqual([]);
    expect(
      reconciler.reconcile({ ...STATUS, resource: "pods" }, reconciler.initialState(), {
        view: new Store(),
        facts: new Facts(),
        now: NOW,
      }),
    ).toEqual({
      writes: [],
    });
  });

  test("a policy that can't be read is retried", () => {
    const facts = new Facts();
    facts.set(live, { failed: "the API server answered 503" });
    expect(() =>
      reconciler.reconcile(STATUS, reconciler.initialState(), { view: new Store(), facts, now: NOW }),
    ).toThrow("503");
  });

  test("keeps the last counts until tallies are collected", () => {
    const status = { matched: 5, applied: 4, skipped: 1, failed: 0 };
    expect(statusIn(reconciled(stored(GOOD, status)))).toMatchObject(status);
    const counted = reconciled(stored(GOOD, status), { outcomes: { matched: 6 } });
    expect(statusIn(counted)).toMatchObject({ matched: 6, applied: 0 });
  });

  const webhooks = (...conditions: readonly string[]): Change => ({
    resource: "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    namespace: "",
    name: "usher",
    object: {
      metadata: { name: "usher" },
      webhooks: [
        {
          clientConfig: { service: { path: "/token/mutate/placement" } },
          matchConditions: conditions.map((name) => ({ name })),
        },
      ],
    },
  });

  test.each<[string, Change[], string]>([
    ["unknown", [], "InEffect"],
    ["about objects with annotations only", [webhooks("has-annotation")], "NotAskedYet"],
    ["about every object", [webhooks()], "InEffect"],
  ])("is effective once the API server calls usher: %s", (_, changes, reason) => {
    const view = new Store();
    view.apply(changes);
    expect(at(statusIn(reconciled(stored(GOOD), undefined, NOW, view)), "conditions", 1, "reason")).toBe(
      reason,
    );
  });

  test("a change of the webhooks reconciles every status when the API server starts or stops asking", () => {
    const view = new Store();
    view.apply([{ resource: RESOURCE, namespace: "", name: "etcd", object: stored(GOOD) }]);
    const state = reconciler.initialState();
    const keysAfter = (change: Change) => {
      view.apply([change]);
      return reconciler.keys(change, state, { view });
    };
    expect(keysAfter(webhooks("has-annotation"))).toEqual([STATUS]);
    expect(keysAfter(webhooks("has-annotation", "other"))).toEqual([]);
    expect(keysAfter(webhooks())).toEqual([STATUS]);
  });

  test("writes the status, guarded by the resourceVersion that was read", () => {
    const result = reconciled(stored(GOOD), {
      outcomes: { matched: 5, applied: 4, skipped: 1 },
      lastApplied: NOW - 1_000,
    });
    expect(result.writes).toEqual([
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
              message: "the policy applies to the objects that it selects",
              lastTransitionTime: "2026-11-15T12:00:00Z",
              observedGeneration: 3,
            },
          ],
        },
      },
    ]);
  });

  test("writes nothing if the status is current", () => {
    const status = statusIn(reconciled(stored(GOOD), { outcomes: { matched: 1 } }));
    expect(reconciled(stored(GOOD, status), { outcomes: { matched: 1 } }, LATER).writes).toEqual([]);
    expect(reconciled(stored(GOOD, status), { outcomes: { matched: 2 } }, LATER).writes).toHaveLength(1);
  });

  test("reports errors with their time, and keeps the time of the last change", () => {
    const fine = statusIn(reconciled(stored(GOOD), { outcomes: { applied: 1 }, lastApplied: NOW }));
    const bad = { ...GOOD, nodeSelector: { pool: "not a label value" } };
    const status = statusIn(reconciled(stored(bad, fine), undefined, LATER));
    expect(status).toMatchObject({
      lastApplied: "2026-11-15T12:00:00Z",
      conditions: [
        { status: "False", reason: "Invalid", lastTransitionTime: "2026-11-15T12:01:00Z" },
        { type: "Effective", status: "False", reason: "Invalid", lastTransitionTime: "2026-11-15T12:01:00Z" },
      ],
    });
    expect(JSON.stringify(status)).toContain("spec.nodeSelector.pool");
  });

  test("warnings do not make the policy invalid", () => {
    const status = statusIn(reconciled(stored({ podSelector: {}, nodeSelector: { a: "b" } })));
    expect(status).toMatchObject({
      conditions: [
        { status: "True", reason: "ValidWithWarnings" },
        { status: "False", reason: "SelectsNothing" },
      ],
    });
    expect(JSON.stringify(status)).toContain("namespaceSelector");
  });

  test("lists conflicts, and keeps them over a change of leader", () => {
    const conflict = { object: "Pod shop/web", field: "spec.nodeSelector.pool", message: "m", at: NOW };
    const status = statusIn(reconciled(stored(GOOD), { outcomes: { skipped: 1 }, conflicts: [conflict] }));
    const reported = [
      { object: "Pod shop/web", field: "spec.nodeSelector.pool", message: "m", time: "2026-11-15T12:00:00Z" },
    ];
    expect(status["conflicts"]).toEqual(reported);
    expect(statusIn(reconciled(stored(GOOD, status), { outcomes: { matched: 9 } }))["conflicts"]).toEqual(
      reported,
    );
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
    ["there are no counts", { podSelector: {}, namespaceSelector: {} }, [namespace("shop")], "NoCriteria"],
  ])("%s", (_what, spec, namespaces, reason) => {
    const view = new Store();
    view.serve("namespaces");
    view.apply([namespace("other"), ...namespaces].map(came));
    expect(reconciled(stored(spec), undefined, NOW, view).writes).toMatchObject([
      { status: { conditions: [{ type: "Valid" }, { type: "Effective", reason }] } },
    ]);
  });
});
