import { describe, expect, test } from "vitest";
import { pod, workload } from "../../../../test/builders/pod.ts";
import type { JsonObject } from "../../../core/json.ts";
import { BUILT_IN_WORKLOADS, POD, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Field } from "../criteria/criteria.ts";
import { limitsNow, opennessOf } from "./mutability.ts";

const ALL: readonly Field[] = [
  "nodeSelector",
  "nodeName",
  "schedulerName",
  "tolerations",
  "requiredNodeAffinity",
  "preferredNodeAffinity",
  "podAffinity",
  "podAntiAffinity",
  "topologySpreadConstraints",
  "priorityClassName",
  "runtimeClassName",
  "schedulingGates",
];

function kindOf(name: string): WorkloadKind {
  const found = BUILT_IN_WORKLOADS.find(({ kind }) => kind === name);
  if (found === undefined) throw new Error(`no workload ${name}`);
  return found;
}

/** The fields that an object takes; `closed` where it takes none. */
function taken(kind: string, old: JsonObject | undefined): readonly Field[] | "closed" {
  const openness = opennessOf(kindOf(kind), old);
  if ("closed" in openness) return "closed";
  return ALL.filter((field) => openness.limits[field] === undefined);
}

const job = (spec: JsonObject, status: JsonObject = {}): JsonObject => {
  const made = workload("batch/v1", "Job");
  return { ...made, spec: { ...(made["spec"] as JsonObject), ...spec }, status };
};
const GATED = { schedulingGates: [{ name: "g" }], containers: [] };
const WHILE_SUSPENDED = [
  "nodeSelector",
  "tolerations",
  "requiredNodeAffinity",
  "preferredNodeAffinity",
  "schedulingGates",
] as const;
const AT_A_GATE = ["nodeSelector", "tolerations", "requiredNodeAffinity", "preferredNodeAffinity"] as const;

describe("what an object takes", () => {
  test.each<[string, string, JsonObject | undefined, readonly Field[] | "closed"]>([
    ["a pod on CREATE: everything", "Pod", undefined, ALL],
    ["a pod on UPDATE, at a gate", "Pod", pod({ spec: GATED }), AT_A_GATE],
    ["a pod on UPDATE, at no gate", "Pod", pod(), "closed"],
    ["a pod on UPDATE, with an empty list of gates", "Pod", pod({ spec: { schedulingGates: [] } }), "closed"],
    ["a pod on UPDATE, on its node", "Pod", pod({ spec: { nodeName: "n1" } }), "closed"],
    ["a pod that says both", "Pod", pod({ spec: { ...GATED, nodeName: "n1" } }), "closed"],
    ["gates that are nonsense", "Pod", pod({ spec: { schedulingGates: "g" } }), "closed"],
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
      "closed",
    ],
    ["a Job, running", "Job", job({ suspend: false }, { startTime: "2026-01-01T00:00:00Z" }), "closed"],
    ["a Job, not started and not suspended", "Job", job({}), "closed"],
    ["a Job whose suspend is no boolean", "Job", job({ suspend: "true" }), "closed"],
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
    expect(taken(kind, old)).toEqual(fields);
  });

  test("kinds of other groups have rules of their own", () => {
    const foreign = { group: "kruise.io", version: "v1", resource: "jobs", template: ["spec", "template"] };
    expect(opennessOf({ ...foreign, kind: "Job" }, job({}))).toEqual({ limits: {} });
    expect(opennessOf({ ...foreign, kind: "DaemonSet" }, undefined)).toEqual({ limits: {} });
  });

  test("at a gate terms only grow at their end, in a suspended Job they may change", () => {
    expect(opennessOf(POD, pod({ spec: GATED }))).toMatchObject({ limits: { appendOnly: true } });
    expect(opennessOf(kindOf("Job"), job({ suspend: true }))).not.toHaveProperty("limits.appendOnly");
  });
});

describe("a pod with a gate may have no node", () => {
  const GATE = { schedulingGates: [{ name: "g" }] };
  const NO_GATE = { schedulingGates: [] };

  test.each<[string, JsonObject, { schedulingGates: readonly JsonObject[] }, readonly Field[]]>([
    ["neither", {}, NO_GATE, []],
    ["the pod has a gate", GATE, NO_GATE, ["nodeName"]],
    ["the pod has its node", { nodeName: "n1" }, NO_GATE, ["schedulingGates"]],
    ["the policy brings a gate", {}, GATE, ["nodeName"]],
    ["the policy brings a gate to a pod on its node", { nodeName: "n1" }, GATE, ["schedulingGates"]],
    ["a nodeName that is empty", { nodeName: "" }, GATE, ["nodeName"]],
  ])("%s", (_what, spec, wanted, limited) => {
    const now = limitsNow({}, spec, wanted);
    expect(ALL.filter((field) => now[field] !== undefined)).toEqual(limited);
  });

  test("what is limited anyway keeps its reason", () => {
    expect(limitsNow({ nodeName: "why" }, GATE, NO_GATE)).toEqual({ nodeName: "why" });
  });

  test("a gate that can't be written keeps no node away", () => {
    expect(limitsNow({ schedulingGates: "why" }, {}, GATE)).toEqual({
      schedulingGates: "why",
    });
  });
});
