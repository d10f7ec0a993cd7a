import { describe, expect, test } from "vitest";
import { at } from "../../../src/core/json.ts";
import { eventually } from "../../cluster/access/wait.ts";
import { nameIn, type PlacementStage, podSpecOf, warningsOf } from "../fixtures/placement-stage.ts";
import { job, POOL, REQUIRED } from "./objects.ts";

const LATER = { template: { metadata: { labels: { app: "later" } } } };
/** No node has this label, so the pods stay pending and the Job keeps running. */
const NOWHERE = { nodeSelector: { nowhere: "yes" } };

/** The template of a Job is immutable once it has started: changing it then blocks every update, deletion included. */
export function jobs(stage: PlacementStage): void {
  const active = (name: string) =>
    eventually(`a pod of ${name}`, async () => at(await stage.get(`jobs/${name}`), "status", "active") === 1);
  const gone = (name: string) =>
    eventually(`${name} gone`, async () => (await stage.request("GET", `jobs/${name}`)).status === 404);

  describe("a Job", () => {
    test("suspended, before it started or again after, gets what it can accept and a warning about the rest", async () => {
      await stage.call("POST", "jobs", job("suspended", "before", { suspend: true }));
      await stage.call("POST", "jobs", job("again", "before", {}, NOWHERE));
      await active("again");
      await stage.call("PATCH", "jobs/again", { spec: { suspend: true } });
      await eventually("no start time", async () => {
        return at(await stage.get("jobs/again"), "status", "startTime") === undefined;
      });
      for (const name of ["suspended", "again"]) {
        const reply = await stage.request("PATCH", `jobs/${name}`, { spec: LATER });
        expect(reply.status, JSON.stringify(reply.body)).toBe(200);
        const spec = podSpecOf(reply.body);
        expect(at(spec, "nodeSelector", "pool")).toBe("etcd");
        expect(at(spec, "affinity", "nodeAffinity", REQUIRED)).toEqual({
          nodeSelectorTerms: [{ matchExpressions: [POOL] }],
        });
        for (const field of ["schedulerName", "podAntiAffinity", "priorityClassName", "runtimeClassName"])
          expect(warningsOf(reply)).toContain(field);
      }
    });

    test("is resumed and placed in one update", async () => {
      await stage.call("POST", "jobs", job("resumed", "before", { suspend: true }));
      const resumed = await stage.call("PATCH", "jobs/resumed", { spec: { suspend: false, ...LATER } });
      expect(at(podSpecOf(resumed), "nodeSelector", "pool")).toBe("etcd");
    });

    test("that runs, and that a policy would change, can be labelled and deleted in every way", async () => {
      const ways = ["foreground", "orphan", "background"];
      for (const way of ways) await stage.call("POST", "jobs", job(way, "pool", {}, NOWHERE));
      for (const way of ways) await active(way);
      await stage.policies({
        "pool-more": {
          podSelector: { matchLabels: { app: "pool" } },
          onUpdate: "Inject",
          nodeSelector: { more: "yes" },
        },
      });
      const before = podSpecOf(await stage.get("jobs/orphan"));
      await stage.kubectl(["label", "job/orphan", "touched=yes"]);
      expect(podSpecOf(await stage.get("jobs/orphan"))).toEqual(before);
      // Nor do its pods get anything: otherwise they could not lose the finalizer that the Job counts them by.
      await stage.kubectl(["label", "pods", "-l", "batch.kubernetes.io/job-name=orphan", "touched=yes"]);
      for (const way of ways)
        await stage.kubectl(["delete", `job/${way}`, `--cascade=${way}`, "--wait=false"]);
      for (const way of ways) await gone(way);
      const orphans = await stage.items("pods?labelSelector=batch.kubernetes.io/job-name%3Dorphan");
      expect(orphans).toHaveLength(1);
      for (const orphan of orphans) await stage.call("DELETE", `pods/${nameIn(orphan)}`);
      await stage.dropPolicy("pool-more");
    });

    test("that is done is deleted by its time to live, with its pods", async () => {
      await stage.call("POST", "jobs", job("brief", "pool", { ttlSecondsAfterFinished: 1 }));
      await gone("brief");
      await eventually("its pods gone", async () => {
        return (await stage.items("pods?labelSelector=batch.kubernetes.io/job-name%3Dbrief")).length === 0;
      });
    });
  });
}
