import { describe, expect, test } from "vitest";
import { merged, mergedSpec, placementRequest, requiring, term } from "../../../../test/builders/merged.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import type { PlacementRequest } from "./context.ts";

describe.each(["nodeName", "runtimeClassName", "priorityClassName", "schedulerName"] as const)(
  "%s",
  (field) => {
    test.each<[string, before: Json | undefined, after: string]>([
      ["absent", undefined, "new"],
      ["null", null, "new"],
      ["empty", "", "new"],
      ["the same", "new", "new"],
      ["another: the pod's stays", "old", "old"],
    ])("%s", (_what, before, after) => {
      const own = before === undefined ? {} : { [field]: before };
      for (const make of [pod, deployment]) {
        const spec = make === pod ? ["spec"] : ["spec", "template", "spec"];
        const first = merged(
          make({ spec: { containers: [], ...own } }),
          [placementRequest({ [field]: "new" })],
          {
            spec,
          },
        );
        expect(first.spec).toEqual({ containers: [], [field]: after });
        expect(merged(first.object, [placementRequest({ [field]: "new" })], { spec }).patch).toEqual([]);
      }
    });

    test("the conflict names who was first", () => {
      const { findings, spec } = mergedSpec({}, [
        placementRequest({ [field]: "one" }, { name: "a" }),
        placementRequest({ [field]: "two" }),
      ]);
      expect(spec[field]).toBe("one");
      expect(findings.at(-1)).toMatchObject({
        outcome: "skipped",
        code: "USHER-P10",
        message: `${field}: kept policy a's value one; policy p wants two`,
        warn: 60,
      });
    });

    test("is restored, but not over the user's value", () => {
      const back = placementRequest({ [field]: "new" }, { restoring: true });
      expect(mergedSpec({}, [back]).spec[field]).toBe("new");
      const kept = mergedSpec({ [field]: "mine" }, [back]);
      expect(kept.spec[field]).toBe("mine");
      expect(kept.findings).toEqual([]);
    });

    test("is skipped if it can't be written", () => {
      const { findings, patch } = merged({ ...pod(), spec: "x" }, [placementRequest({ [field]: "new" })]);
      expect(patch).toEqual([]);
      expect(findings).toMatchObject([{ outcome: "failed" }]);
      expect(
        mergedSpec({}, [placementRequest({ [field]: "new" })], {
          limits: { immutable: { [field]: "it is late" } },
        }).findings,
      ).toMatchObject([
        { outcome: "skipped", code: "USHER-P13", message: `${field} of policy p skipped: it is late` },
      ]);
    });
  },
);

describe("priorityClassName and the numbers that follow from it", () => {
  const OWN = { priority: 0, preemptionPolicy: "PreemptLowerPriority" };

  test("are removed from a pod, stay in a template, stay with the pod's own class", () => {
    const asked = placementRequest({ priorityClassName: "high" });
    expect(mergedSpec(OWN, [asked]).spec).toEqual({ priorityClassName: "high" });
    expect(mergedSpec(OWN, [asked]).patch).toContainEqual({ op: "remove", path: "/spec/priority" });
    const template = merged(deployment({ spec: OWN }), [asked], { spec: ["spec", "template", "spec"] });
    expect(template.spec).toEqual({ ...OWN, priorityClassName: "high" });
    const own = { ...OWN, priorityClassName: "low" };
    expect(mergedSpec(own, [asked]).spec).toEqual(own);
    expect(
      mergedSpec(OWN, [placementRequest({ priorityClassName: "high" }, { restoring: true })]).spec,
    ).toEqual({
      ...OWN,
      priorityClassName: "high",
    });
  });
});

describe("a node and a gate", () => {
  test.each<[string, JsonObject, PlacementRequest[], JsonObject]>([
    [
      "the pod waits at a gate",
      { schedulingGates: [{ name: "g" }] },
      [placementRequest({ nodeName: "n" })],
      { schedulingGates: [{ name: "g" }] },
    ],
    [
      "the pod has its node",
      { nodeName: "n" },
      [placementRequest({ schedulingGates: [{ name: "g" }] })],
      { nodeName: "n" },
    ],
    [
      "one policy has both",
      {},
      [placementRequest({ nodeName: "n", schedulingGates: [{ name: "g" }] })],
      { schedulingGates: [{ name: "g" }] },
    ],
    [
      "the first policy has the node",
      {},
      [
        placementRequest({ nodeName: "n" }, { name: "a" }),
        placementRequest({ schedulingGates: [{ name: "g" }] }),
      ],
      { nodeName: "n" },
    ],
  ])("%s", (_what, own, requests, expected) => {
    const { spec, findings, object } = mergedSpec(own, requests);
    expect(spec).toEqual(expected);
    expect(findings.at(-1)).toMatchObject({ outcome: "skipped", code: "USHER-P15", warn: 60 });
    expect(merged(object, requests).patch).toEqual([]);
  });

  test("a node beside affinity in one policy", () => {
    const { spec } = mergedSpec({}, [
      placementRequest({ nodeName: "n", requiredNodeAffinity: [term("zone=a")] }),
    ]);
    expect(spec).toEqual({ nodeName: "n", ...requiring(term("zone=a")) });
  });
});
