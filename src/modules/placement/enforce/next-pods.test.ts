import { expect, test } from "vitest";
import { assemblyOf, callOf } from "../../../../test/builders/evaluation.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { SHOP } from "../../../../test/builders/placed.ts";
import { deployment, workload } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { responseOf } from "../../../core/evaluate/response.ts";
import type { JsonObject } from "../../../core/json.ts";
import { placement } from "../index.ts";

const policy = (change: JsonObject = {}) =>
  clusterPolicy("pool", {
    namespaceSelector: {},
    podSelector: {},
    nodeSelector: { pool: "etcd" },
    enforcement: "Refuse",
    ...change,
  });
const ELSEWHERE = { spec: { containers: [], nodeSelector: { pool: "web" } } };

async function asked(request: AdmissionRequest, stored?: JsonObject, pool = policy()) {
  const world = outside({
    fact: () => (stored === undefined ? { absent: "NotFound" } : { found: stored, complete: true }),
  });
  const assembly = assemblyOf([placement], [SHOP, pool].map(came));
  const response = responseOf(await evaluate(callOf(assembly, request, { phase: "validate" }), world));
  return {
    allowed: response.allowed,
    warns: response.warnings.join().includes("USHER-P31"),
    fetches: world.fetches,
  };
}

const annotated = (object: JsonObject, change: Partial<AdmissionRequest> = {}) =>
  requestFor(object, { operation: "UPDATE", oldObject: object, ...change });

test.each<[string, JsonObject, JsonObject, boolean]>([
  ["a workload whose pods would be refused", policy(), deployment(ELSEWHERE), true],
  ["a StatefulSet", policy(), workload("apps/v1", "StatefulSet", ELSEWHERE), true],
  ["a CronJob", policy(), workload("batch/v1", "CronJob", ELSEWHERE), true],
  ["one whose pods get the missing part when they are created", policy(), deployment(), false],
  [
    "a template that names a node, so that its pods get nothing",
    policy(),
    deployment({ spec: { nodeName: "n1" } }),
    true,
  ],
  ["a DaemonSet, whose pods are not judged", policy(), workload("apps/v1", "DaemonSet", ELSEWHERE), false],
  ["a PodTemplate, which has no pods", policy(), workload("v1", "PodTemplate", ELSEWHERE), false],
  ["a policy for templates", policy({ targets: "Templates" }), deployment(ELSEWHERE), false],
  ["a policy that warns", policy({ enforcement: "Warn" }), deployment(ELSEWHERE), false],
])("an update of %s", async (_what, pool, object, warns) => {
  expect(await asked(annotated(object), undefined, pool)).toMatchObject({ allowed: true, warns });
});

test("the workload is unchanged, although a pod of its template was tried", async () => {
  const own = { annotations: { "usher.dev/reapply": "now", a: "b" }, labels: {} };
  const object = deployment({ metadata: own, spec: { containers: [], tolerations: [{ key: "a" }] } });
  const before = JSON.stringify(object);
  const pool = policy({ tolerations: [{ key: "b", operator: "Exists" }], schedulerName: "fast" });
  expect(await asked(annotated(object), undefined, pool)).toMatchObject({ allowed: true });
  expect(JSON.stringify(object)).toBe(before);
});

test("controllers get no warning", async () => {
  const userInfo = { username: "system:serviceaccount:kube-system:deployment-controller", groups: [] };
  expect(await asked(annotated(deployment(ELSEWHERE), { userInfo }))).toMatchObject({ warns: false });
});

const scaled = (before: number | undefined, after: number | undefined): AdmissionRequest => {
  const scale = (replicas: number | undefined): JsonObject => ({
    apiVersion: "autoscaling/v1",
    kind: "Scale",
    metadata: { name: "web", namespace: "shop" },
    spec: replicas === undefined ? {} : { replicas },
  });
  return requestFor(scale(after), {
    operation: "UPDATE",
    oldObject: scale(before),
    subResource: "scale",
    resource: { group: "apps", version: "v1", resource: "deployments" },
  });
};

test.each<[string, AdmissionRequest, JsonObject | undefined, boolean, number]>([
  ["up", scaled(1, 2), deployment(ELSEWHERE), true, 1],
  ["up from nothing", scaled(undefined, 1), deployment(ELSEWHERE), true, 1],
  ["down, which reads nothing", scaled(2, 1), deployment(ELSEWHERE), false, 0],
  ["to nothing", scaled(2, undefined), deployment(ELSEWHERE), false, 0],
  ["up, and it meets the policy", scaled(1, 2), deployment(), false, 1],
  ["up, and it can't be read", scaled(1, 2), undefined, false, 1],
])("a workload that is scaled %s", async (_what, request, stored, warns, fetches) => {
  const result = await asked(request, stored);
  expect(result).toMatchObject({ allowed: true, warns });
  expect(result.fetches).toHaveLength(fetches);
});
