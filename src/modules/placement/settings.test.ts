import { describe, expect, test } from "vitest";
import { assemblyOf, atOnce, callOf } from "../../../test/builders/evaluation.ts";
import { outside } from "../../../test/builders/outside.ts";
import { SHOP } from "../../../test/builders/placed.ts";
import { deployment, pod, workload } from "../../../test/builders/pod.ts";
import { came, clusterPolicy } from "../../../test/builders/policy.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { accessVerbs } from "../../../test/builders/rights.ts";
import { scannedKinds } from "../../core/drift/drift-scan.ts";
import { evaluate } from "../../core/evaluate/evaluate.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import type { JsonObject } from "../../core/json.ts";
import { DRIFT_ACCESS } from "./drift/scanned-workloads.ts";
import { placement } from "./index.ts";
import { settings } from "./settings.ts";

test.each<[string, JsonObject, boolean]>([
  ["nothing", {}, true],
  ["kinds built in", { resources: ["pods", "statefulsets.apps", "cronjobs.batch"] }, true],
  ["a kind of the configuration", { resources: ["rollouts.argoproj.io"] }, true],
  ["a kind instead of a resource", { resources: ["StatefulSet"] }, false],
  ["a resource without its group", { resources: ["statefulsets"] }, false],
  ["a resource that the group does not have", { resources: ["statefulset.apps"] }, false],
  ["no kind at all", { resources: [] }, false],
  ["a service account", { trustedControllers: ["argo-rollouts/argo-rollouts"] }, true],
  ["a name that is neither account nor user", { trustedControllers: ["a/b/c"] }, false],
  ["a fallback", { fallback: "Compiled" }, true],
  ["an unknown fallback", { fallback: true }, false],
  ["an unknown setting", { kinds: [] }, false],
])("%s", (_what, value, valid) => {
  expect(settings.safeParse(value).success).toBe(valid);
});

describe("with chosen kinds", () => {
  const installation = {
    ...DEFAULT_INSTALLATION,
    settings: { placement: { resources: ["statefulsets.apps"] } },
  };
  const policy = clusterPolicy("pool", {
    namespaceSelector: {},
    podSelector: {},
    nodeSelector: { pool: "etcd" },
    enforcement: "Refuse",
  });
  const assembly = assemblyOf([placement], [SHOP, policy].map(came), installation);

  test("hooks, drift scan and permissions cover only these", () => {
    const asked = assembly.hooks.flatMap(({ rules }) => rules.flatMap(({ resources }) => resources));
    expect(new Set(asked)).toEqual(new Set(["statefulsets"]));
    expect(scannedKinds(placement, installation).map(({ kind }) => kind)).toEqual(["StatefulSet"]);
    const access = accessVerbs({ ...placement, access: DRIFT_ACCESS }, installation.settings);
    expect(Object.keys(access)).toEqual(["statefulsets"]);
  });

  test.each<[string, JsonObject, boolean]>([
    ["a StatefulSet", workload("apps/v1", "StatefulSet"), true],
    ["a Deployment", deployment(), false],
    ["a pod", pod(), false],
  ])("%s", (_what, object, placed) => {
    const call = callOf(assembly, requestFor(object), { trace: true });
    const evaluation = atOnce(evaluate(call, outside()));
    expect(evaluation.draft.edits.length > 0).toBe(placed);
  });

  test("a request that still arrives is neither changed nor refused, and the trace has the reason", () => {
    const hooks = assemblyOf([placement], [SHOP, policy].map(came)).hooks;
    const call = (phase: "mutate" | "validate") =>
      atOnce(evaluate(callOf(assembly, requestFor(deployment()), { phase, hooks, trace: true }), outside()));
    const { draft, trace } = call("mutate");
    expect(draft.edits).toEqual([]);
    expect(trace.map(({ why }) => why).join()).toContain("modules.placement.resources");
    expect(call("validate").denials).toEqual([]);
  });
});
