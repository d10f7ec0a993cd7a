import { describe, expect, test } from "vitest";
import type { JsonObject } from "../json.ts";
import { parseVersion } from "../kubernetes/versions.ts";
import { feasibleNodes, feasibleNodesOfPods, prepareWorld, releaseOf, verdictOn } from "./scheduling.ts";
import type { SchedulingWorld } from "./world.ts";

const NOTHING: SchedulingWorld = {
  nodes: [],
  pods: [],
  namespaces: [],
  persistentVolumes: [],
  persistentVolumeClaims: [],
  storageClasses: [],
  csiNodes: [],
  csiDrivers: [],
  csiStorageCapacities: [],
};

function node(name: string, spec: JsonObject = {}, labels: JsonObject = {}): JsonObject {
  const allocatable = { cpu: "4", memory: "8Gi", pods: "110" };
  return {
    metadata: { name, labels: { "kubernetes.io/hostname": name, ...labels } },
    spec,
    status: { allocatable },
  };
}

const TAINTED = { taints: [{ key: "dedicated", value: "edge", effect: "NoSchedule" }] };

describe("feasibleNodes", () => {
  test("groups nodes by verdict and sums up the reasons as the scheduler does", () => {
    const nodes = [node("a"), node("b", TAINTED), node("c", TAINTED), node("d", { unschedulable: true })];
    const found = feasibleNodes({ metadata: { name: "p" }, spec: {} }, prepareWorld({ ...NOTHING, nodes }));
    expect(found.groups.map(({ verdict, nodes: names }) => [verdict.kind, ...names])).toEqual([
      ["fits", "a"],
      ["fails", "b", "c"],
      ["fails", "d"],
    ]);
    expect(found).toMatchObject({ fits: 1, unknown: 0, fails: 3 });
    expect(found.summary).toBe(
      "1/4 nodes are available: 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s).",
    );
    expect(verdictOn(found, "c")).toMatchObject({ kind: "fails", filter: "TaintToleration" });
    expect(verdictOn(found, "z")).toBeUndefined();
  });

  test("rejects a gated pod for every node", () => {
    const pod = { spec: { schedulingGates: [{ name: "a" }, { name: "b" }] } };
    const found = feasibleNodes(pod, prepareWorld({ ...NOTHING, nodes: [node("a"), node("b")] }));
    expect(found.summary).toBe("0/2 nodes are available: waiting for scheduling gates: [a b].");
  });

  test("answers for pods of one template once, and reports progress for each", () => {
    const pod = (name: string, spec: JsonObject): JsonObject => ({
      metadata: { name, namespace: "default" },
      spec,
    });
    const seen: number[] = [];
    const found = feasibleNodesOfPods(
      [pod("a", {}), pod("b", {}), pod("c", { nodeSelector: { zone: "a" } })],
      prepareWorld({ ...NOTHING, nodes: [node("n")] }),
      (done) => seen.push(done),
    );
    expect(found[0]).toBe(found[1]);
    expect(found.map(({ fits }) => fits)).toEqual([1, 1, 0]);
    expect(seen).toEqual([1, 2, 3]);
  });
});

test.each([
  ["v1.32.1", "1.33"],
  ["v1.36.3", "1.36"],
  ["v1.37.0-gke.1", "1.37"],
  ["v1.40.0", "1.37"],
])("releaseOf takes %s for the nearest known release, %s", (version, release) => {
  expect(releaseOf(parseVersion(version))).toBe(release);
});
