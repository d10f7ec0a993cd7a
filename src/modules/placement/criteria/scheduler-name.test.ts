import { expect, test } from "vitest";
import { merged, placementRequest } from "../../../../test/builders/merged.ts";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import type { Json, JsonObject } from "../../../core/json.ts";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";
const TEMPLATE = ["spec", "template", "spec"];
const DEFAULTED = { schedulerName: "default-scheduler" };

const applied = (manifest: Json) => ({
  annotations: { [LAST_APPLIED]: typeof manifest === "string" ? manifest : JSON.stringify(manifest) },
});
const managed = (operation: string, fieldsV1: Json) => ({
  managedFields: [{ manager: "m", operation, fieldsV1 }],
});
const IN_TEMPLATE = { "f:spec": { "f:template": { "f:spec": { "f:schedulerName": {} } } } };

test.each<[string, metadata: JsonObject, meant: boolean]>([
  ["without any indication", {}, false],
  ["the applied manifest names it", applied({ spec: { template: { spec: DEFAULTED } } }), true],
  ["the applied manifest does not", applied({ spec: { template: { spec: {} } } }), false],
  ["the applied manifest names it elsewhere", applied({ spec: DEFAULTED }), false],
  ["an annotation that is not JSON", applied("{"), false],
  ["an annotation that is not an object", applied("[1]"), false],
  ["an applier owns it", managed("Apply", IN_TEMPLATE), true],
  ["a controller owns it by writing back", managed("Update", IN_TEMPLATE), false],
  ["an applier owns it elsewhere", managed("Apply", { "f:spec": { "f:schedulerName": {} } }), false],
  ["managers that are not a list", { managedFields: "x" }, false],
  ["managers that are nothing", { managedFields: [null, 1, {}] }, false],
])("in a template: %s", (_what, metadata, meant) => {
  const object = deployment({ spec: DEFAULTED, metadata });
  const { spec, object: after } = merged(object, [placementRequest({ schedulerName: "mine" })], {
    spec: TEMPLATE,
  });
  expect(spec["schedulerName"]).toBe(meant ? "default-scheduler" : "mine");
  expect(merged(after, [placementRequest({ schedulerName: "mine" })], { spec: TEMPLATE }).patch).toEqual([]);
});

test("in a pod", () => {
  const one = (metadata: JsonObject) =>
    merged(pod({ spec: DEFAULTED, metadata }), [placementRequest({ schedulerName: "mine" })]).spec[
      "schedulerName"
    ];
  expect(one({})).toBe("mine");
  expect(one(managed("Apply", { "f:spec": { "f:schedulerName": {} } }))).toBe("default-scheduler");
  expect(one(managed("Apply", IN_TEMPLATE))).toBe("mine");
});

test("a policy with the default value keeps it against the next", () => {
  const requests = [
    placementRequest({ schedulerName: "default-scheduler" }, { name: "a" }),
    placementRequest({ schedulerName: "mine" }),
  ];
  const first = merged(pod({ spec: DEFAULTED }), requests);
  expect(first.spec).toEqual(DEFAULTED);
  expect(first.findings.at(-1)?.message).toBe(
    "schedulerName: kept policy a's value default-scheduler; policy p wants mine",
  );
});

test("a restored name replaces the API server's default, not a name that the user wrote", () => {
  const back = [placementRequest({ schedulerName: "mine" }, { restoring: true })];
  expect(merged(pod({ spec: DEFAULTED }), back).spec).toEqual({ schedulerName: "mine" });
  const meant = applied({ spec: DEFAULTED });
  expect(merged(pod({ spec: DEFAULTED, ...meant }), back).spec).toEqual(DEFAULTED);
});

test("any string is a valid scheduler name, as in Kubernetes", () => {
  const { spec, patch } = merged(pod({ spec: DEFAULTED }), [
    placementRequest({ schedulerName: "MyScheduler" }),
  ]);
  expect(spec["schedulerName"]).toBe("MyScheduler");
  expect(patch).not.toEqual([]);
  const stored = clusterPolicy("p", {
    namespaceSelector: {},
    podSelector: {},
    schedulerName: "My Scheduler",
    tolerations: [{ key: "a", operator: "Exists" }],
  });
  const { object, answer } = placed([SHOP, stored], pod({ spec: DEFAULTED }));
  expect(answer.warnings).toEqual([]);
  expect(object["spec"]).toMatchObject({ schedulerName: "My Scheduler", tolerations: [{ key: "a" }] });
});
