import { describe, expect, test } from "vitest";
import { again } from "../../../../test/builders/json.ts";
import { pod, type WorkloadParts, workload } from "../../../../test/builders/pod.ts";
import {
  ANTI,
  asking,
  EVERYTHING,
  injecting,
  nodeAffinity,
  noPatch,
  noteOf,
  OTHER,
  POOL,
  policy,
  stored,
  templateOf,
  update,
  withAnnotations,
  zone,
} from "../../../../test/builders/updates.ts";
import { at, type Json, type JsonObject } from "../../../core/json.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";

describe("pods that exist", () => {
  const GATES = [{ name: "example.com/wait" }];
  const gated = (further: JsonObject = {}) =>
    pod({ spec: { containers: [], schedulingGates: GATES, ...further } });

  test("gated: Inject adds what such a pod accepts, and reports the rest", () => {
    const { object, answer } = update([injecting(EVERYTHING)], gated(), gated());
    expect(at(object, "spec", "nodeSelector")).toEqual({ disk: "ssd" });
    expect(at(object, "spec", "tolerations")).toEqual([POOL]);
    expect(at(object, "spec", "affinity")).toEqual(nodeAffinity(zone("a"), zone("b")));
    expect(at(object, "spec", "schedulerName")).toBeUndefined();
    expect(at(object, "spec", "topologySpreadConstraints")).toBeUndefined();
    expect(answer.warnings).toHaveLength(3);
  });

  test("gated: existing values are not reported", () => {
    const known = [injecting(EVERYTHING)];
    const old = stored(known, gated());
    expect(update(known, again(old), old).answer).toMatchObject(noPatch);
  });

  test("gated: nothing is removed, although the policy has changed", () => {
    const old = stored([injecting({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })], gated());
    const now = [injecting({ nodeSelector: { disk: "nvme", more: "1" }, tolerations: [OTHER] }, "p", 2)];
    const { object, answer } = update(now, again(old), old);
    expect(at(object, "spec", "nodeSelector")).toEqual({ disk: "ssd", more: "1" });
    expect(at(object, "spec", "tolerations")).toEqual([POOL, OTHER]);
    expect(answer.warnings.join()).toContain("USHER-P01");
  });

  test("the UPDATE that opens the last gate may still bring terms", () => {
    const result = update([injecting({ nodeSelector: { disk: "ssd" } })], pod(), gated());
    expect(result.nodeSelector).toEqual({ disk: "ssd" });
  });

  test("a gate that a policy added and that was removed stays removed", () => {
    const known = [injecting({ schedulingGates: GATES, nodeSelector: { disk: "ssd" } })];
    const old = stored(known, pod());
    expect(at(old, "spec", "schedulingGates")).toEqual(GATES);
    const now = again(old) as { spec: { schedulingGates: Json } };
    now.spec.schedulingGates = [];
    for (const policies of [known, [], [policy({ schedulingGates: GATES })]]) {
      const { object, answer } = update(policies, now, old);
      expect(at(object, "spec", "schedulingGates")).toEqual([]);
      expect(answer.warnings).toEqual([]);
    }
  });

  test.each<[string, JsonObject]>([
    ["at no gate", pod()],
    ["on its node", pod({ spec: { containers: [], nodeName: "n1" } })],
  ])("%s: nothing new", (_what, sent) => {
    const known = [injecting({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })];
    expect(update(known, sent, sent).answer).toMatchObject(noPatch);
    const asked = update(known, asking(sent), sent).answer;
    expect(asked.patch).toEqual([{ op: "remove", path: "/metadata/annotations/usher.dev~1reapply" }]);
    expect(asked.warnings).toHaveLength(1);
    expect(asked.warnings[0]).toContain("USHER-P22");
  });

  test("on its node: a re-apply that strips the injection would be refused, so it is put back", () => {
    const old = stored([policy(EVERYTHING)], pod());
    (old["spec"] as Record<string, Json>)["nodeName"] = "n1";
    const now = pod({
      spec: { containers: [{ name: "main", image: "registry.example/app:2" }], nodeName: "n1" },
    });
    const { object } = update([], now, old);
    expect(at(object, "spec")).toEqual({
      ...(old["spec"] as JsonObject),
      ...(now["spec"] as { containers: Json }),
      nodeName: "n1",
    });
  });

  test("but not if the user changes placement: then the API server's refusal is about the user's change", () => {
    const old = stored([policy({ nodeSelector: { disk: "ssd" }, tolerations: [POOL] })], pod());
    const now = pod({ spec: { containers: [], nodeSelector: { own: "1" } } });
    const { object } = update([], now, old);
    expect(at(object, "spec")).toEqual({ containers: [], nodeSelector: { own: "1" } });
  });
});

describe("Jobs that exist", () => {
  const job = (spec: JsonObject = {}, parts: WorkloadParts = {}): JsonObject => {
    const made = workload("batch/v1", "Job", parts);
    return { ...made, spec: { ...(made["spec"] as JsonObject), ...spec } };
  };
  const suspended = () => job({ suspend: true });

  test("suspended: Inject adds what such a Job accepts, and reports the rest", () => {
    const result = update([injecting(EVERYTHING)], suspended(), suspended());
    expect(templateOf(result)).toMatchObject({
      nodeSelector: { disk: "ssd" },
      tolerations: [POOL],
      affinity: nodeAffinity(zone("a"), zone("b")),
    });
    expect(at(templateOf(result), "affinity", "podAntiAffinity")).toBeUndefined();
    expect(at(templateOf(result), "schedulerName")).toBeUndefined();
    expect(result.answer.warnings).toHaveLength(3);
  });

  test("suspended: a reapply changes mutable fields and leaves the rest", () => {
    const old = stored([policy(EVERYTHING)], suspended());
    const result = update([], asking(again(old)), old);
    expect(templateOf(result)).toEqual({
      containers: [{ name: "main", image: "registry.example/app:1" }],
      affinity: ANTI,
      schedulerName: "mine",
      topologySpreadConstraints: EVERYTHING["topologySpreadConstraints"],
    });
    expect(provenanceOf(result.object)).toMatchObject([{ policy: "ClusterPodSchedulingPolicy/p" }]);
  });

  test("resumed in the same UPDATE", () => {
    const result = update(
      [injecting({ nodeSelector: { disk: "ssd" } })],
      job({ suspend: false }),
      suspended(),
    );
    expect(result.nodeSelector).toEqual({ disk: "ssd" });
  });

  test.each<[string, JsonObject]>([
    ["a label", job({}, { objectLabels: { a: "1" } })],
    ["a finalizer less", job({}, { metadata: { finalizers: [] } })],
    ["suspended in the same UPDATE", suspended()],
  ])("running: nothing, %s", (_what, now) => {
    const running = job({}, { metadata: { finalizers: ["orphan"] } });
    expect(update([injecting(EVERYTHING)], now, running).answer).toMatchObject(noPatch);
  });

  test("running: a stripped injection is restored completely", () => {
    const old = stored([policy(EVERYTHING)], job());
    const result = update([], withAnnotations(job(), noteOf(old)), old);
    expect(result.object).toEqual(old);
  });
});
