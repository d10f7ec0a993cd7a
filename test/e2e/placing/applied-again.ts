import { describe, expect, test } from "vitest";
import { at, type JsonObject } from "../../../src/core/json.ts";
import { eventually } from "../../cluster/access/wait.ts";
import { type PlacementStage, podSpecOf } from "../fixtures/placement-stage.ts";
import { DEDICATED, DISK, job, pod, REQUIRED, requiring } from "./objects.ts";

/** In each field that a policy writes as well: `apply` removes elements that the manifest does not have. */
const OWN = {
  nodeSelector: { disk: "ssd" },
  tolerations: [{ key: "own", operator: "Exists" }],
  affinity: requiring([DISK]),
};

const MANIFESTS: readonly (readonly [resource: string, object: JsonObject])[] = [
  ["pods/again", { apiVersion: "v1", kind: "Pod", ...pod("again", "everything", OWN) }],
  ["jobs/running", { apiVersion: "batch/v1", kind: "Job", ...job("running", "everything", {}, OWN) }],
  [
    "jobs/waiting",
    { apiVersion: "batch/v1", kind: "Job", ...job("waiting", "everything", { suspend: true }, OWN) },
  ],
  [
    "cronjobs/nightly",
    {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "nightly" },
      spec: { schedule: "0 3 1 1 *", jobTemplate: { spec: job("", "everything", {}, OWN)["spec"] ?? {} } },
    },
  ],
];

const APPLY = ["apply", "-f", "-"];
const SERVER_SIDE = ["apply", "--server-side", "--force-conflicts", "-f", "-"];

/** Immutable fields can't lose the injection either: unless it is put back, every re-apply would be refused. */
export function appliedAgain(stage: PlacementStage): void {
  describe("applied again, from a manifest that sets the same fields", () => {
    test.for(MANIFESTS)("%s is unchanged", async ([resource, manifest]) => {
      await stage.kubectl(APPLY, manifest);
      const made = podSpecOf(await stage.get(resource));
      expect(made["nodeSelector"]).toEqual({ disk: "ssd", pool: "etcd" });
      expect(made["tolerations"]).toContainEqual(DEDICATED);
      const terms = at(made, "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms");
      expect(terms).toEqual([
        { matchExpressions: [DISK, { key: "pool", operator: "In", values: ["etcd"] }] },
      ]);
      for (const args of [APPLY, SERVER_SIDE, SERVER_SIDE, APPLY]) {
        await stage.kubectl(args, manifest);
        const now = podSpecOf(await stage.get(resource));
        // The scheduler may bind the pod in between.
        expect({ ...now, nodeName: undefined }).toEqual({ ...made, nodeName: undefined });
      }
    });
  });

  describe("a scheduler that the user names is the user's choice, and the API server's default is not", () => {
    test.for<readonly [string, readonly string[], JsonObject, string]>([
      [
        "named, by server-side apply",
        SERVER_SIDE,
        { schedulerName: "default-scheduler" },
        "default-scheduler",
      ],
      ["not named, by server-side apply", SERVER_SIDE, {}, "packing"],
      ["named, by client-side apply", APPLY, { schedulerName: "default-scheduler" }, "default-scheduler"],
      ["not named, by client-side apply", APPLY, {}, "packing"],
    ])("%s", async ([, args, spec, scheduler]) => {
      const manifest = {
        apiVersion: "batch/v1",
        kind: "Job",
        ...job("chosen", "everything", { suspend: true }, spec),
      };
      await stage.kubectl(args, manifest);
      expect(podSpecOf(await stage.get("jobs/chosen"))["schedulerName"]).toBe(scheduler);
      await stage.call("DELETE", "jobs/chosen");
      await eventually(
        "it to be gone",
        async () => (await stage.request("GET", "jobs/chosen")).status === 404,
      );
    });
  });
}
