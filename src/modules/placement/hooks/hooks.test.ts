import { describe, expect, test } from "vitest";
import { assemblyOf } from "../../../../test/builders/evaluation.ts";
import { deployment, pod, workload } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy, namespacedPolicy, went } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { workloadTable } from "../../../core/kubernetes/workloads.ts";
import { hookWants } from "../../../core/module/hook.ts";
import { placement } from "../index.ts";

const hooksOf = (known: readonly JsonObject[] = [], installation = DEFAULT_INSTALLATION) =>
  assemblyOf([placement], known.map(came), installation).declaredHooks.filter(
    ({ phase, failure }) => phase === "mutate" && failure === "open",
  );

/** The hooks that match a request. */
const asking = (
  object: JsonObject,
  change: Partial<AdmissionRequest> = {},
  installation = DEFAULT_INSTALLATION,
) =>
  hooksOf([], installation)
    .filter((hook) => hookWants(hook, requestFor(object, change)))
    .map(({ name }) => name);

const UPDATE = { operation: "UPDATE" } as const;

test("they are fail-open with a short timeout, and exclude the control plane", () => {
  expect(hooksOf().length).toBe(2);
  for (const hook of hooksOf()) {
    expect(hook).toMatchObject({
      timeoutSeconds: 2,
      reinvocation: "IfNeeded",
      namespaces: { except: ["kube-system", "kube-public", "kube-node-lease", "usher-system"] },
    });
  }
});

describe("matched requests", () => {
  test.each<[string, JsonObject, Partial<AdmissionRequest>, readonly string[]]>([
    ["a created pod", pod(), {}, ["placement"]],
    ["a pod that changes", pod(), UPDATE, ["placement-pod-updates"]],
    ["a deleted pod", pod(), { operation: "DELETE" }, []],
    ["a pod's status", pod(), { ...UPDATE, subResource: "status" }, []],
    ["a pod's ephemeral containers", pod(), { ...UPDATE, subResource: "ephemeralcontainers" }, []],
    ["a pod's binding", pod(), { operation: "CREATE", subResource: "binding" }, []],
    ["a created Deployment", deployment(), {}, ["placement"]],
    ["a Deployment that changes", deployment(), UPDATE, ["placement"]],
    ["a Deployment's scale", deployment(), { ...UPDATE, subResource: "scale" }, []],
    ["a Job that changes", workload("batch/v1", "Job"), UPDATE, ["placement"]],
    ["an old CronJob", workload("batch/v1beta1", "CronJob"), {}, []],
    ["a pod of the control plane", pod({ namespace: "kube-system" }), {}, []],
    ["an unconfigured Rollout", workload("argoproj.io/v1alpha1", "Rollout"), {}, []],
  ])("%s", (_what, object, change, names) => {
    expect(asking(object, change)).toEqual(names);
  });

  test("a namespace of the control plane that the installation opens", () => {
    const opened = { ...DEFAULT_INSTALLATION, opened: ["kube-system"] };
    expect(asking(pod({ namespace: "kube-system" }), {}, opened)).toEqual(["placement"]);
    expect(asking(pod({ namespace: "kube-public" }), {}, opened)).toEqual([]);
  });

  test("further kinds that the installation names, at both operations", () => {
    const rollout = { group: "argoproj.io", version: "v1alpha1", kind: "Rollout", resource: "rollouts" };
    const installation = {
      ...DEFAULT_INSTALLATION,
      workloads: workloadTable([{ ...rollout, template: ["spec", "template"] }]),
    };
    const object = workload("argoproj.io/v1alpha1", "Rollout");
    expect(asking(object, {}, installation)).toEqual(["placement"]);
    expect(asking(object, UPDATE, installation)).toEqual(["placement"]);
  });
});

describe("without any policy", () => {
  const conditions = (known: readonly JsonObject[]) =>
    hooksOf(known)
      .filter(({ name }) => name === "placement")
      .flatMap(({ conditions: all = [] }) => all.map(({ name }) => name));

  test.each<[string, readonly JsonObject[], readonly string[]]>([
    ["objects with usher's annotations only", [], ["has-annotation"]],
    ["every object once there is a cluster policy", [clusterPolicy("p", { podSelector: {} })], []],
    ["every object once there is a namespaced policy", [namespacedPolicy("shop", "p", {})], []],
  ])("the API server calls for %s", (_what, known, expected) => {
    expect(conditions(known)).toEqual(expected);
  });

  test("the rules stay, so that a restored update and a forged annotation are answered everywhere", () => {
    const rules = (known: readonly JsonObject[]) =>
      hooksOf(known).find(({ name }) => name === "placement")?.rules;
    expect(rules([])).toEqual(rules([clusterPolicy("p", { podSelector: {} })]));
  });
});

describe("gated pods are covered as long as some policy injects on update", () => {
  const INJECT = { podSelector: {}, namespaceSelector: {}, onUpdate: "Inject" };
  const condition = (known: readonly JsonObject[]) =>
    hooksOf(known)
      .flatMap(({ conditions }) => conditions ?? [])
      .map(({ expression }) => expression)
      .join();

  test.each<[string, readonly JsonObject[], boolean]>([
    ["no policy", [], false],
    ["one that restores", [clusterPolicy("p", { ...INJECT, onUpdate: "Restore" })], false],
    ["one that injects", [clusterPolicy("p", INJECT)], true],
    [
      "one of a namespace that injects",
      [namespacedPolicy("shop", "p", { podSelector: {}, onUpdate: "Inject" })],
      true,
    ],
    [
      "one that injects and selects no namespace",
      [clusterPolicy("p", { podSelector: {}, onUpdate: "Inject" })],
      false,
    ],
    ["an invalid one", [clusterPolicy("p", { ...INJECT, onUpdate: ["Inject"] })], false],
  ])("%s", (_what, known, gated) => {
    expect(condition(known).includes("schedulingGates")).toBe(gated);
  });

  test("they follow the policies", () => {
    const policy = clusterPolicy("p", INJECT);
    const assembly = assemblyOf([placement], [came(policy)]);
    const shown = () => JSON.stringify(assembly.hooks);
    expect(shown()).toContain("oldObject.spec.schedulingGates");
    assembly.apply([went(policy)]);
    expect(shown()).not.toContain("oldObject.spec.schedulingGates");
  });
});
