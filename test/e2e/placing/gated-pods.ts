import { beforeAll, describe, expect, test } from "vitest";
import { at, type JsonObject, stringAt } from "../../../src/core/json.ts";
import { eventually } from "../../cluster/access/wait.ts";
import { type PlacementStage, podSpecOf, warningsOf } from "../fixtures/placement-stage.ts";
import {
  APART,
  DEDICATED,
  DISK,
  GATES,
  POOL,
  PREFERENCE,
  PREFERRED,
  pod,
  REQUIRED,
  requiring,
  SPREAD,
  within,
} from "./objects.ts";

/** Changes of the spec of a pod with one nodeSelector key and one term, and whether the API server accepts them. */
const CHANGES: readonly (readonly [what: string, spec: JsonObject, accepted: boolean])[] = [
  ["a further nodeSelector key", { nodeSelector: { disk: "ssd", pool: "etcd" } }, true],
  ["another value of a key", { nodeSelector: { disk: "hdd" } }, false],
  ["a key less", { nodeSelector: { disk: null } }, false],
  ["a requirement at the end of the term", { affinity: requiring([DISK, POOL]) }, true],
  ["a requirement at the beginning of the term", { affinity: requiring([POOL, DISK]) }, false],
  ["other values", { affinity: requiring([within("disk", "ssd", "nvme")]) }, false],
  ["a further term", { affinity: requiring([DISK], [POOL]) }, false],
  ["no term", { affinity: { nodeAffinity: null } }, false],
  ["preferred node affinity", { affinity: { nodeAffinity: { [PREFERRED]: [PREFERENCE] } } }, true],
  ["pod anti-affinity", { affinity: { podAntiAffinity: APART } }, false],
  ["another scheduler", { schedulerName: "packing" }, false],
  ["a node", { nodeName: "w0" }, false],
  ["topology spread", { topologySpreadConstraints: [SPREAD] }, false],
  ["a further gate", { schedulingGates: [...GATES, { name: "example.com/new" }] }, false],
  ["no gate, and one more requirement", { schedulingGates: null, affinity: requiring([DISK, POOL]) }, true],
];

const LATER = { metadata: { labels: { app: "later" } } };

/** A gated pod may still be narrowed, in only some ways. */
export function gatedPods(stage: PlacementStage): void {
  describe("a gated pod", () => {
    beforeAll(async () => {
      const own = { schedulingGates: GATES, nodeSelector: { disk: "ssd" }, affinity: requiring([DISK]) };
      for (const app of ["ungated", "before"])
        await stage.call("POST", "pods", pod(`gated-${app}`, app, own));
      await stage.call("POST", "pods", pod("gated-bare", "before", { schedulingGates: GATES }));
    });

    test.for(CHANGES)("the API server on %s", async ([, spec, accepted]) => {
      const { status, body } = await stage.request("PATCH", "pods/gated-ungated?dryRun=All", { spec });
      expect(status, JSON.stringify(body)).toBe(accepted ? 200 : 422);
    });

    test("gets nothing new from a policy that only restores", async () => {
      const label = { metadata: { labels: { app: "everything" } } };
      const { status, body } = await stage.request("PATCH", "pods/gated-ungated?dryRun=All", label);
      expect(status).toBe(200);
      expect(at(body, "spec", "nodeSelector")).toEqual({ disk: "ssd" });
    });

    test.for([
      ["gated-before", { disk: "ssd", pool: "etcd" }, [DISK, POOL]],
      ["gated-bare", { pool: "etcd" }, [POOL]],
    ] as const)(
      "%s gets from an injecting policy what it can accept, and a warning about the rest",
      async ([name, selector, requirements]) => {
        // From the first such policy on, the hook for updates of pods covers gates.
        const reply = await eventually("the injection", async () => {
          const tried = await stage.request("PATCH", `pods/${name}?dryRun=All`, LATER);
          const placed = at(tried.body, "spec", "nodeSelector", "pool") !== undefined;
          return placed || tried.status !== 200 ? tried : undefined;
        });
        expect(reply.status, JSON.stringify(reply.body)).toBe(200);
        const spec = podSpecOf(reply.body);
        expect(spec["nodeSelector"]).toEqual(selector);
        const terms = [{ matchExpressions: requirements }];
        expect(at(spec, "affinity", "nodeAffinity", REQUIRED)).toEqual({ nodeSelectorTerms: terms });
        expect(at(spec, "affinity", "nodeAffinity", PREFERRED)).toEqual([PREFERENCE]);
        expect(spec["tolerations"]).toContainEqual(DEDICATED);
        for (const field of [
          "schedulerName",
          "topologySpreadConstraints",
          "podAntiAffinity",
          "priorityClassName",
        ])
          expect(warningsOf(reply)).toContain(field);
        expect(spec["schedulerName"]).toBe("default-scheduler");
        expect(spec["schedulingGates"]).toEqual(GATES);
      },
    );

    test("the update that removes the gate may still get an injection", async () => {
      const opened = await stage.call("PATCH", "pods/gated-before", {
        ...LATER,
        spec: { schedulingGates: null },
      });
      expect(at(opened, "spec", "nodeSelector")).toEqual({ disk: "ssd", pool: "etcd" });
      await eventually("its node", async () => {
        return stringAt(await stage.get("pods/gated-before"), "spec", "nodeName");
      });
    });
  });
}
