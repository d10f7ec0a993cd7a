import { describe, expect, test } from "vitest";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { pod, workload } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import { type Fields, wants } from "../../../../test/builders/wants.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { BUILT_IN_WORKLOADS, POD, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import { CRITERIA } from "../criteria/criteria.ts";
import { NO_LIMITS } from "../criteria/criterion.ts";
import { limitsNow } from "./merge-policies.ts";
import { limitsAtCreation, mutabilityOf } from "./mutability.ts";

const ALL: readonly string[] = CRITERIA.map(({ name }) => name);

function kindOf(name: string): WorkloadKind {
  const found = BUILT_IN_WORKLOADS.find(({ kind }) => kind === name);
  if (found === undefined) throw new Error(`no workload ${name}`);
  return found;
}

/** The criteria that an object accepts; `immutable` if it accepts none. */
function mutable(kind: string, old: JsonObject | undefined): readonly string[] | "immutable" {
  const found =
    old === undefined ? { limits: limitsAtCreation(kindOf(kind)) } : mutabilityOf(kindOf(kind), old);
  if ("immutable" in found) return "immutable";
  return ALL.filter((name) => found.limits.immutable[name] === undefined);
}

const job = (spec: JsonObject, status: JsonObject = {}): JsonObject => {
  const made = workload("batch/v1", "Job");
  return { ...made, spec: { ...(made["spec"] as JsonObject), ...spec }, status };
};
const GATED = { schedulingGates: [{ name: "g" }], containers: [] };
const WHILE_SUSPENDED = [
  "nodeSelector",
  "requiredNodeAffinity",
  "preferredNodeAffinity",
  "tolerations",
  "schedulingGates",
] as const;
const AT_A_GATE = ["nodeSelector", "requiredNodeAffinity", "preferredNodeAffinity", "tolerations"] as const;

describe("fields that an object accepts", () => {
  test.each<[string, string, JsonObject | undefined, readonly string[] | "immutable"]>([
    ["a pod on CREATE: everything", "Pod", undefined, ALL],
    ["a pod on UPDATE, at a gate", "Pod", pod({ spec: GATED }), AT_A_GATE],
    ["a pod on UPDATE, at no gate", "Pod", pod(), "immutable"],
    [
      "a pod on UPDATE, with an empty list of gates",
      "Pod",
      pod({ spec: { schedulingGates: [] } }),
      "immutable",
    ],
    ["a pod on UPDATE, on its node", "Pod", pod({ spec: { nodeName: "n1" } }), "immutable"],
    ["a pod with both", "Pod", pod({ spec: { ...GATED, nodeName: "n1" } }), "immutable"],
    ["gates that are nonsense", "Pod", pod({ spec: { schedulingGates: "g" } }), "immutable"],
    ["a Job on CREATE: everything", "Job", undefined, ALL],
    ["a Job, suspended and never started", "Job", job({ suspend: true }), WHILE_SUSPENDED],
    [
      "a Job, suspended again: its start is reset",
      "Job",
      job({ suspend: true }, { startTime: null }),
      WHILE_SUSPENDED,
    ],
    [
      "a Job, suspended again and not yet stopped",
      "Job",
      job({ suspend: true }, { startTime: "2026-01-01T00:00:00Z" }),
      "immutable",
    ],
    ["a Job, running", "Job", job({ suspend: false }, { startTime: "2026-01-01T00:00:00Z" }), "immutable"],
    ["a Job, not started and not suspended", "Job", job({}), "immutable"],
    ["a Job whose suspend is not a boolean", "Job", job({ suspend: "true" }), "immutable"],
    ["a DaemonSet on CREATE", "DaemonSet", undefined, ALL.filter((field) => field !== "nodeName")],
    [
      "a DaemonSet on UPDATE",
      "DaemonSet",
      workload("apps/v1", "DaemonSet"),
      ALL.filter((field) => field !== "nodeName"),
    ],
    ["a Deployment on UPDATE", "Deployment", workload("apps/v1", "Deployment"), ALL],
    ["a StatefulSet on UPDATE", "StatefulSet", workload("apps/v1", "StatefulSet"), ALL],
    ["a CronJob on UPDATE", "CronJob", workload("batch/v1", "CronJob"), ALL],
  ])("%s", (_what, kind, old, fields) => {
    expect(mutable(kind, old)).toEqual(fields);
  });

  test("kinds of other groups have other rules", () => {
    const other = { group: "kruise.io", version: "v1", resource: "jobs", template: ["spec", "template"] };
    expect(mutabilityOf({ ...other, kind: "Job" }, job({}))).toEqual({ limits: NO_LIMITS });
    expect(limitsAtCreation({ ...other, kind: "DaemonSet" })).toEqual(NO_LIMITS);
  });

  test("at a gate terms only grow at their end, in a suspended Job they may change", () => {
    expect(mutabilityOf(POD, pod({ spec: GATED }))).toMatchObject({ limits: { appendOnly: true } });
    expect(mutabilityOf(kindOf("Job"), job({ suspend: true }))).not.toHaveProperty("limits.appendOnly");
  });
});

describe("a pod with a gate may have no node", () => {
  const GATE = { schedulingGates: [{ name: "g" }] };
  const NODE = { nodeName: "n1" };

  test.each<[string, JsonObject, Fields, readonly string[]]>([
    ["neither", {}, NODE, []],
    ["the pod has a gate", GATE, NODE, ["nodeName"]],
    ["the pod has its node", NODE, { ...GATE, nodeName: "n2" }, ["schedulingGates"]],
    ["the policy brings a gate", {}, { ...GATE, ...NODE }, ["nodeName"]],
    ["the policy brings a gate to a pod on its node", NODE, GATE, ["schedulingGates"]],
    ["a nodeName that is empty", { nodeName: "" }, { ...GATE, ...NODE }, ["nodeName"]],
  ])("%s", (_what, spec, wanted, limited) => {
    const { immutable } = limitsNow(NO_LIMITS, spec, wants(wanted));
    expect(ALL.filter((name) => immutable[name] !== undefined)).toEqual(limited);
  });

  test("an already limited field keeps its reason", () => {
    const limits = { immutable: { nodeName: "why" } };
    expect(limitsNow(limits, GATE, wants(NODE))).toEqual(limits);
  });

  test("a gate that can't be written does not exclude a node", () => {
    const limits = { immutable: { schedulingGates: "why" } };
    expect(limitsNow(limits, {}, wants({ ...GATE, ...NODE }))).toEqual(limits);
  });
});

test("a new DaemonSet gets no nodeName, and the code explains that no DaemonSet can have one", () => {
  const policy = clusterPolicy("p", { namespaceSelector: {}, podSelector: {}, nodeName: "n1" });
  const { answer, object } = placed([SHOP, policy], workload("apps/v1", "DaemonSet"));
  expect(at(object, "spec", "template", "spec", "nodeName")).toBeUndefined();
  expect(answer.warnings).toEqual([expect.stringMatching(/a DaemonSet runs on many nodes \(USHER-P15\)$/)]);
});
