import { describe, expect, test } from "vitest";
import { at, type JsonObject } from "../../../src/core/json.ts";
import type { ClusterAccess } from "../../cluster/access/access.ts";
import { type PlacementStage, podSpecOf, SPEC } from "../fixtures/placement-stage.ts";
import { DEDICATED, GATES, job, POOL, pod, requiring, SPREAD, within } from "./objects.ts";

const SHAPES: readonly (readonly [what: string, spec: JsonObject])[] = [
  ["nothing", {}],
  ["nulls", { nodeSelector: null, tolerations: null, affinity: null, topologySpreadConstraints: null }],
  ["empty objects", { nodeSelector: {}, tolerations: [], affinity: {} }],
  ["empty affinities", { affinity: { nodeAffinity: {}, podAffinity: {}, podAntiAffinity: {} } }],
  ["an empty term", { affinity: requiring([]) }],
  [
    "the same already",
    { nodeSelector: { pool: "etcd" }, tolerations: [DEDICATED], affinity: requiring([POOL]) },
  ],
  ["a contradiction", { nodeSelector: { pool: "web" }, affinity: requiring([within("pool", "web")]) }],
  ["the same spread, with another skew", { topologySpreadConstraints: [{ ...SPREAD, maxSkew: 3 }] }],
  ["another scheduler", { schedulerName: "other" }],
  ["a gate", { schedulingGates: GATES }],
];

const ROLLOUTS = "/apis/argoproj.io/v1alpha1/namespaces/apps/rollouts";

/** A patch that does not apply fails the request even for a fail-open hook, and a careless one loses values of others. */
export function shapes(stage: PlacementStage, cluster: () => ClusterAccess): void {
  test.for(SHAPES)("all criteria of a policy apply to %s, in a pod and in a template", async ([, spec]) => {
    const template = { metadata: { labels: { app: "everything" } }, spec: { ...SPEC, ...spec } };
    for (const [resource, object] of [
      ["pods", pod("p", "everything", spec)],
      ["podtemplates", { metadata: { name: "t" }, template }],
    ] as const) {
      const { status, body } = await stage.request("POST", `${resource}?dryRun=All`, object);
      expect(status, JSON.stringify(body)).toBe(201);
      expect(podSpecOf(body)["runtimeClassName"]).toBe("sandboxed");
    }
  });

  describe("fields that usher does not know survive", () => {
    test("a native sidecar, a gate and newer fields, in a pod", async () => {
      const resizePolicy = [{ resourceName: "cpu", restartPolicy: "NotRequired" }];
      const spec = {
        hostUsers: false,
        schedulingGates: GATES,
        initContainers: [{ name: "side", image: "side:1", restartPolicy: "Always" }],
        containers: [{ name: "c", image: "app:1", resizePolicy }],
      };
      const made = await stage.call("POST", "pods?dryRun=All", pod("p", "everything", spec));
      expect(podSpecOf(made)).toMatchObject({ ...spec, nodeSelector: { pool: "etcd" } });
    });

    test("a Job's pod failure policy", async () => {
      const onExitCodes = { containerName: "c", operator: "In", values: [42] };
      const podFailurePolicy = { rules: [{ action: "FailJob", onExitCodes }] };
      const made = await stage.call("POST", "jobs?dryRun=All", job("j", "everything", { podFailurePolicy }));
      expect(at(made, "spec", "podFailurePolicy")).toMatchObject(podFailurePolicy);
      expect(at(podSpecOf(made), "nodeSelector")).toEqual({ pool: "etcd" });
    });

    test("invented fields, in a kind that the configuration names", async () => {
      const template = {
        metadata: { labels: { app: "everything" } },
        spec: { containers: [{ name: "c", invented: [1.5, "x"] }], invented: { deep: [{ er: null }] } },
      };
      const made = await cluster().call("POST", `${ROLLOUTS}?dryRun=All`, {
        apiVersion: "argoproj.io/v1alpha1",
        kind: "Rollout",
        metadata: { name: "r" },
        spec: { strategy: { invented: true }, template },
      });
      expect(made).toMatchObject({ spec: { strategy: { invented: true }, template } });
      expect(at(podSpecOf(made), "nodeSelector")).toEqual({ pool: "etcd" });
    });
  });
}
