import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assemblyOf, atOnce, callOf } from "../../../../test/builders/evaluation.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { controlledBy, deployment, pod, workload } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy, namespace } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { accessVerbs } from "../../../../test/builders/rights.ts";
import { Facts } from "../../../core/decision/need.ts";
import { type ObjectDrift, scanObject } from "../../../core/drift/drift-scan.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { at, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { groupVersionOf } from "../../../core/kubernetes/object.ts";
import { workloadTable } from "../../../core/kubernetes/workloads.ts";
import { REAPPLY } from "../../../core/provenance/reapply.ts";
import { placement } from "../index.ts";
import { DRIFT_ACCESS, driftScan } from "./scanned-workloads.ts";

const TABLE = workloadTable();
const SHOP = namespace("shop");

function kindOf(object: JsonObject) {
  const { group } = groupVersionOf(stringAt(object, "apiVersion"));
  const found = TABLE.byKind(group, stringAt(object, "kind") ?? "");
  if (found === undefined) throw new Error("no such kind");
  return found;
}

describe("scanned workloads", () => {
  const gated = { containers: [], schedulingGates: [{ name: "wait" }] };
  test.each<[string, JsonObject, RegExp | undefined]>([
    ["a Deployment", deployment(), undefined],
    ["one that is being deleted", deployment({ metadata: { deletionTimestamp: "now" } }), /being deleted/],
    [
      "a ReplicaSet of a Deployment",
      workload("apps/v1", "ReplicaSet", { owner: controlledBy("apps/v1", "Deployment", "web") }),
      /belongs to Deployment web/,
    ],
    [
      "a StatefulSet of an operator",
      workload("apps/v1", "StatefulSet", { owner: controlledBy("druid/v1", "Etcd", "e") }),
      undefined,
    ],
    ["a started Job", workload("batch/v1", "Job"), /suspended/],
    ["a gated pod", pod({ spec: gated }), undefined],
    ["a pod at no gate", pod(), /gate/],
    ["a pod on its node", pod({ spec: { ...gated, nodeName: "n1" } }), /./],
    [
      "a pod at a gate, of a ReplicaSet",
      pod({ spec: gated, owner: controlledBy("apps/v1", "ReplicaSet", "web-1") }),
      /belongs to ReplicaSet web-1/,
    ],
    [
      "a pod at a gate, of a CronJob's Job",
      pod({ spec: gated, owner: controlledBy("batch/v1", "Job", "j") }),
      /belongs to Job j/,
    ],
    [
      "a pod at a gate, of an operator",
      pod({ spec: gated, owner: controlledBy("druid/v1", "Etcd", "e") }),
      undefined,
    ],
  ])("%s", (_, object, apart) => {
    const why = driftScan.leftAlone(object, kindOf(object), TABLE);
    if (apart === undefined) expect(why).toBeUndefined();
    else expect(why).toMatch(apart);
  });

  test.each<[string, JsonObject, boolean]>([
    ["a pod at no gate", pod({ labels: { app: "a" } }), true],
    ["a pod on its node", pod({ spec: { containers: [], nodeName: "n1" } }), true],
    ["a started Job", workload("batch/v1", "Job"), true],
    ["a pod that has run", { ...pod(), status: { phase: "Succeeded" } }, false],
    [
      "a Job that has run",
      { ...workload("batch/v1", "Job"), status: { conditions: [{ type: "Complete", status: "True" }] } },
      false,
    ],
    ["a pod of a ReplicaSet", pod({ owner: controlledBy("apps/v1", "ReplicaSet", "web-1") }), false],
    ["a pod of a DaemonSet", pod({ owner: controlledBy("apps/v1", "DaemonSet", "web-1") }), false],
    ["a pod that is being deleted", pod({ metadata: { deletionTimestamp: "now" } }), false],
  ])("%s that usher did not admit is missing: %s", (_, object, missing) => {
    const known = [
      clusterPolicy("p", { namespaceSelector: {}, podSelector: {}, nodeSelector: { pool: "x" } }),
    ];
    const { carried, rolls, refused } = scanUnder(known, object);
    expect(carried.map(({ state }) => state)).toEqual(missing ? ["missing"] : []);
    expect(rolls).toBe(false);
    if (missing) expect(refused).toContain("the object is immutable");
    // An object with an injection of a policy is as good as it can be.
    const { nodeName: _node, ...spec } = object["spec"] as JsonObject;
    const placed = storedAfter(known, { ...object, spec });
    expect(scanUnder(known, placed).carried).toEqual([]);
  });

  test("of pods only those without a node are read", () => {
    expect(
      TABLE.all.filter((kind) => driftScan.fieldSelector?.(kind) !== undefined).map(({ kind }) => kind),
    ).toEqual(["Pod"]);
  });

  test("every kind may be read; patched only if drift repair is enabled", () => {
    for (const repairDrift of [false, undefined, true]) {
      const settings = repairDrift === undefined ? {} : { placement: { repairDrift } };
      const access = accessVerbs({ ...placement, access: DRIFT_ACCESS }, settings);
      expect(Object.keys(access)).toHaveLength(TABLE.all.length);
      for (const verbs of Object.values(access))
        expect(verbs).toEqual(repairDrift === true ? "get,list,patch" : "get,list");
    }
  });
});

const terms = (...keys: string[]) =>
  fc.array(
    fc.record({
      matchExpressions: fc
        .uniqueArray(fc.constantFrom(...keys), { minLength: 1, maxLength: 2 })
        .map((chosen) => chosen.map((key) => ({ key, operator: "Exists" }))),
    }),
    { minLength: 1, maxLength: 2 },
  );
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const required = (nodeSelectorTerms: unknown) => ({ nodeAffinity: { [REQUIRED]: { nodeSelectorTerms } } });
const toleration = fc.record({ key: fc.constantFrom("a", "b"), operator: fc.constant("Exists") });
const criteria = fc.record(
  {
    nodeSelector: fc.dictionary(fc.constantFrom("pool", "zone"), fc.constantFrom("x", "y"), { maxKeys: 2 }),
    tolerations: fc.array(toleration, { maxLength: 2 }),
    affinity: terms("rack", "zone", "disk").map(required),
    schedulerName: fc.constantFrom("mine", "yours"),
    priority: fc.integer({ min: 0, max: 2 }),
  },
  { requiredKeys: [] },
);
const policies = fc
  .dictionary(fc.constantFrom("p", "q", "r"), criteria, { maxKeys: 3 })
  .map((specs) =>
    Object.entries(specs).map(([name, spec]) =>
      clusterPolicy(name, { namespaceSelector: {}, podSelector: {}, ...(spec as unknown as JsonObject) }),
    ),
  );
/** An API server stores no empty map, so a pod has none. */
const podSpec = fc
  .record(
    {
      nodeSelector: fc.dictionary(fc.constant("pool"), fc.constantFrom("x", "z"), { minKeys: 1 }),
      // A requirement that the pod shares with a policy can't be missing from the policy's afterwards, so it has others.
      affinity: terms("own-a", "own-b").map(required),
    },
    { requiredKeys: [] },
  )
  .map((spec) => ({ ...(spec as unknown as JsonObject), containers: [{ name: "c", image: "i" }] }));

/** The Deployment as it is stored after a request, with these policies. */
function storedAfter(known: readonly JsonObject[], object: JsonObject, old?: JsonObject): JsonObject {
  const assembly = assemblyOf([placement], [SHOP, ...known].map(came));
  const change = old === undefined ? {} : { operation: "UPDATE" as const, oldObject: old };
  const call = callOf(assembly, requestFor(structuredClone(object) as JsonObject, change));
  return atOnce(evaluate(call, outside())).draft.object;
}

function scanUnder(known: readonly JsonObject[], object: JsonObject): ObjectDrift {
  const assembly = assemblyOf([placement], [SHOP, ...known].map(came));
  const found = scanObject(placement, object, kindOf(object), assembly, { facts: new Facts(), now: 0 });
  if ("needs" in found) throw new Error("nothing should be needed");
  return found;
}

function asking(object: JsonObject): JsonObject {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const annotations = isObject(metadata["annotations"]) ? metadata["annotations"] : {};
  return { ...object, metadata: { ...metadata, annotations: { ...annotations, [REAPPLY]: "now" } } };
}

const specOf = (object: JsonObject) => JSON.stringify((object["spec"] as JsonObject)["template"]);

const KEYS = ["rack", "zone", "disk", "own-a", "own-b"];

/** The meaning of its spec, independent of order: which sets of labels a node may have, by required affinity. */
function meaningOf(object: JsonObject): unknown {
  const spec = at(object, "spec", "template", "spec");
  const terms = listAt(spec, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms").map((one) =>
    listAt(one, "matchExpressions").map((expression) => stringAt(expression, "key") ?? ""),
  );
  const nodes = Array.from({ length: 2 ** KEYS.length }, (_, n) => KEYS.filter((_key, i) => n & (2 ** i)));
  return {
    nodeSelector: at(spec, "nodeSelector"),
    schedulerName: at(spec, "schedulerName"),
    tolerations: new Set(listAt(spec, "tolerations").map((one) => stringAt(one, "key"))),
    nodes: nodes.filter(
      (labels) => terms.length === 0 || terms.some((keys) => keys.every((key) => labels.includes(key))),
    ),
  };
}

describe("for any policies before and now", () => {
  test("a workload that was just admitted is current", () => {
    fc.assert(
      fc.property(policies, podSpec, (known, spec) => {
        const stored = storedAfter(known, deployment({ spec }));
        const { carried, rolls, refused } = scanUnder(known, stored);
        expect({ rolls, refused }).toEqual({ rolls: false, refused: undefined });
        for (const { state } of carried) expect(state).toBe("current");
      }),
    );
  });

  test("a scan reports a change exactly if a reapply makes one, after which everything is current", () => {
    let rolled = 0;
    fc.assert(
      fc.property(policies, policies, podSpec, (before, now, spec) => {
        const stored = storedAfter(before, deployment({ spec }));
        const { rolls, carried } = scanUnder(now, stored);
        const renewed = storedAfter(now, asking(stored), stored);
        expect(specOf(renewed) !== specOf(stored)).toBe(rolls);
        if (rolls) {
          rolled++;
          expect(carried.some(({ state }) => state !== "current")).toBe(true);
        }
        const again = scanUnder(now, renewed);
        expect(again.rolls).toBe(false);
        for (const { state } of again.carried) expect(state).toBe("current");
      }),
    );
    expect(rolled).toBeGreaterThan(0);
  });

  test("after a reapply a workload may run exactly where a new one may", () => {
    fc.assert(
      fc.property(policies, policies, podSpec, (before, now, spec) => {
        const stored = storedAfter(before, deployment({ spec }));
        const renewed = storedAfter(now, asking(stored), stored);
        expect(meaningOf(renewed)).toEqual(meaningOf(storedAfter(now, deployment({ spec }))));
      }),
    );
  });

  test("without provenance, as after a replace while usher was down, it is missing or needs nothing", () => {
    fc.assert(
      fc.property(policies, podSpec, (known, spec) => {
        const { carried, rolls } = scanUnder(known, deployment({ spec }));
        for (const { state } of carried) expect(state).toBe("missing");
        expect(carried.length > 0).toBe(rolls);
      }),
    );
  });
});
