import { describe, expect, test } from "vitest";
import { EMPTY_WORLD, placedPod, requesting, schedulingNode } from "../../../test/builders/scheduling.ts";
import type { JsonObject } from "../json.ts";
import { parseVersion } from "../kubernetes/versions.ts";
import { feasibilityByClass, feasibleNodes, prepareWorld, releaseOf } from "./scheduling.ts";

function node(name: string, spec: JsonObject = {}): JsonObject {
  return schedulingNode(name, { spec });
}

const TAINTED = { taints: [{ key: "dedicated", value: "edge", effect: "NoSchedule" }] };

describe("feasibleNodes", () => {
  test("groups nodes by verdict and sums up the reasons as the scheduler does", () => {
    const nodes = [node("a"), node("b", TAINTED), node("c", TAINTED), node("d", { unschedulable: true })];
    const found = feasibleNodes(
      { metadata: { name: "p" }, spec: {} },
      prepareWorld({ ...EMPTY_WORLD, nodes }),
    );
    expect(found.groups.map(({ verdict, nodes: names }) => [verdict.kind, ...names])).toEqual([
      ["fits", "a"],
      ["fails", "b", "c"],
      ["fails", "d"],
    ]);
    expect(found).toMatchObject({ fits: 1, unknown: 0, fails: 3 });
    expect(found.summary).toBe(
      "1/4 nodes are available: 1 node(s) were unschedulable, 2 node(s) had untolerated taint(s).",
    );
  });

  test.each([
    ["1.33", "2 node(s) had untolerated taint {dedicated: edge}"],
    ["1.34", "2 node(s) had untolerated taint(s)"],
  ] as const)(
    "words taints as kube-scheduler %s does, and groups nodes with the same ones",
    (release, reason) => {
      const nodes = [node("a"), node("b", TAINTED), node("c", TAINTED)];
      const found = feasibleNodes({ spec: {} }, prepareWorld({ ...EMPTY_WORLD, nodes, release }));
      expect(found.groups.map(({ nodes: names }) => names)).toEqual([["a"], ["b", "c"]]);
      expect(found.summary).toContain(reason);
    },
  );

  test.each([
    ["1.33", true],
    ["1.34", false],
  ] as const)(
    "kube-scheduler %s tries preemption for a pod that is larger than the node: %s",
    (release, tried) => {
      const pod = { spec: { priority: 5, containers: [requesting({ cpu: "1000000" })] } };
      const pods = [placedPod("a", { priority: 1, containers: [requesting({ cpu: "1" })] })];
      const found = feasibleNodes(pod, prepareWorld({ ...EMPTY_WORLD, nodes: [node("a")], pods, release }));
      expect(found).toMatchObject({ fails: 1, preemption: tried ? ["a"] : [] });
    },
  );

  test("rejects a gated pod for every node", () => {
    const pod = { spec: { schedulingGates: [{ name: "a" }, { name: "b" }] } };
    const found = feasibleNodes(pod, prepareWorld({ ...EMPTY_WORLD, nodes: [node("a"), node("b")] }));
    expect(found.summary).toBe("0/2 nodes are available: waiting for scheduling gates: [a b].");
  });

  test("reports where preemption could change the verdict", () => {
    const busy = { containers: [requesting({ cpu: "4" })] };
    const world = prepareWorld({
      ...EMPTY_WORLD,
      nodes: [node("low"), node("high"), node("free")],
      pods: [placedPod("low", { ...busy, priority: 1 }), placedPod("high", { ...busy, priority: 10 })],
    });
    const judge = (spec: JsonObject) => feasibleNodes({ spec: { ...busy, ...spec } }, world);
    expect(judge({ priority: 5 }).preemption).toEqual(["low"]);
    expect(judge({ priority: 5 }).notes).toEqual([
      "preemption is not simulated: evicting pods of a lower priority could make room on 1 node",
    ]);
    expect(judge({ priority: 1 }).preemption).toEqual([]);
    expect(judge({ priorityClassName: "some" }).preemption).toEqual(["low", "high"]);
    expect(judge({ priority: 50, preemptionPolicy: "Never" }).preemption).toEqual([]);
    // No eviction makes a node larger.
    expect(judge({ priority: 50, overhead: { cpu: "1" } }).preemption).toEqual([]);
  });

  test("distinguishes pods only by labels that a selector names", () => {
    const term = { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: { app: "a" } } };
    const required = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
    const world = prepareWorld({
      ...EMPTY_WORLD,
      nodes: [node("n")],
      pods: [placedPod("n", { affinity: { podAntiAffinity: required } })],
    });
    const pod = (labels: JsonObject): JsonObject => ({
      metadata: { namespace: "default", labels },
      spec: {},
    });
    const pods = [pod({ app: "a", index: "0" }), pod({ app: "a", index: "1" }), pod({ app: "b" })];
    const found = pods.map(feasibilityByClass(world));
    expect(found[0]).toBe(found[1]);
    expect(found.map(({ fits }) => fits)).toEqual([0, 0, 1]);
  });

  test("answers for pods of one template once", () => {
    const pod = (name: string, spec: JsonObject): JsonObject => ({
      metadata: { name, namespace: "default" },
      spec,
    });
    const world = prepareWorld({ ...EMPTY_WORLD, nodes: [node("n")] });
    const pods = [pod("a", {}), pod("b", {}), pod("c", { nodeSelector: { zone: "a" } })];
    const found = pods.map(feasibilityByClass(world));
    expect(found[0]).toBe(found[1]);
    expect(found.map(({ fits }) => fits)).toEqual([1, 1, 0]);
  });
});

test.each([
  ["v1.32.1", "1.33"],
  ["v1.36.3", "1.36"],
  ["v1.37.0-gke.1", "1.37"],
  ["v1.40.0", "1.37"],
])("releaseOf maps %s to the nearest known release, %s", (version, release) => {
  expect(releaseOf(parseVersion(version))).toBe(release);
});
