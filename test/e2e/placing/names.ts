import { describe, expect, test } from "vitest";
import { at, stringAt } from "../../../src/core/json.ts";
import { eventually } from "../../cluster/access/wait.ts";
import { originsOf, type PlacementStage, podSpecOf, warningsOf } from "../fixtures/placement-stage.ts";
import { GATES, pod, set } from "./objects.ts";

/** Fields that name another object, which must exist and has effects of its own. */
export function names(stage: PlacementStage): void {
  const tried = (app: string, spec = {}) => stage.request("POST", "pods?dryRun=All", pod("p", app, spec));

  describe("a node by name", () => {
    test("that does not exist is skipped with a warning, or refused, as the policy says", async () => {
      const left = await tried("ghost");
      expect(left.status).toBe(201);
      expect(at(left.body, "spec", "nodeName")).toBeUndefined();
      expect(warningsOf(left)).toMatch(/nodeName.*Node ghost not found/);
      const refused = await tried("closed");
      expect(refused.status).toBe(403);
      expect(stringAt(refused.body, "message")).toMatch(/Node ghost not found/);
    });

    test("is set on a pod, but not on a gated one, nor on a DaemonSet", async () => {
      expect(at((await tried("pinned")).body, "spec", "nodeName")).toBe("w0");
      const gated = await tried("pinned", { schedulingGates: GATES });
      const daemons = await stage.request("POST", "daemonsets?dryRun=All", set("DaemonSet", "d", "pinned"));
      for (const reply of [gated, daemons]) {
        expect(reply.status, JSON.stringify(reply.body)).toBe(201);
        expect(podSpecOf(reply.body)["nodeName"]).toBeUndefined();
        expect(warningsOf(reply)).toContain("nodeName");
      }
    });
  });

  describe("a PriorityClass", () => {
    test("is set completely on a pod, also one that never preempts", async () => {
      const { body } = await tried("class");
      expect(podSpecOf(body)).toMatchObject({
        priorityClassName: "patient",
        priority: 1000,
        preemptionPolicy: "Never",
      });
      // The number is filled in after the webhook, which is then called a second time.
      expect(originsOf(body)).toMatchObject([{ set: ["/spec/priorityClassName"], added: {} }]);
    });

    test("is set by name on a template, and completely on its pods", async () => {
      await stage.call("POST", "statefulsets", set("StatefulSet", "classy", "class"));
      expect(podSpecOf(await stage.get("statefulsets/classy"))["priorityClassName"]).toBe("patient");
      const made = await eventually("its pod", async () => {
        const { status, body } = await stage.request("GET", "pods/classy-0");
        return status === 200 && body;
      });
      expect(podSpecOf(made)).toMatchObject({ priority: 1000, preemptionPolicy: "Never" });
    });

    test("of the pod's own stays", async () => {
      const own = { priorityClassName: "system-cluster-critical" };
      const reply = await tried("class", own);
      expect(podSpecOf(reply.body)).toMatchObject({ ...own, priority: 2_000_000_000 });
      expect(warningsOf(reply)).toContain("priorityClassName");
    });
  });
}
