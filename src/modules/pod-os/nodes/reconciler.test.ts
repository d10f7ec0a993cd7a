import { describe, expect, test } from "vitest";
import { osNode, podOSWith } from "../../../../test/builders/pod-os.ts";
import { podSecurityWith } from "../../../../test/builders/pod-security.ts";
import { Facts } from "../../../core/decision/need.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import { nodeReconciler as reconciler } from "./reconciler.ts";

const REPAIR = { repairNodeLabels: true };
const LIVE = { get: { resource: "nodes", name: "n" }, live: true };

function reconciled(assembly: Assembly, stored?: JsonObject, state = reconciler.initialState()) {
  const facts = new Facts();
  if (stored !== undefined) facts.set(LIVE, { found: stored, complete: true });
  return reconciler.reconcile({ kind: "node", name: "n" }, state, {
    view: assembly.view,
    assembly,
    facts,
    now: 0,
  });
}

describe("the OS label of nodes", () => {
  test.each<[string, { label?: string; reports?: string }, string | undefined]>([
    ["is right", { label: "linux", reports: "linux" }, undefined],
    [
      "is another",
      { label: "windows", reports: "linux" },
      "label kubernetes.io/os is windows, but the kubelet reports linux",
    ],
    ["is missing", { reports: "linux" }, "label kubernetes.io/os is missing, but the kubelet reports linux"],
    ["can't be compared", { label: "linux" }, undefined],
    ["differs from that of a virtual kubelet", { label: "linux", reports: "Linux" }, undefined],
  ])("%s", (_name, node, message) => {
    const result = reconciled(podOSWith([osNode("n", node)]));
    expect(result).toMatchObject({ writes: [] });
    const events = "events" in result ? (result.events ?? []) : [];
    if (message === undefined) expect(events).toEqual([]);
    else
      expect(events).toMatchObject([
        {
          reason: "NodeOSLabelDrift",
          regarding: { kind: "Node", name: "n" },
          message: expect.stringContaining(message),
        },
      ]);
  });

  test("an event is written once for each change", () => {
    const state = reconciler.initialState();
    const assembly = podOSWith([osNode("n", { label: "windows", reports: "linux" })]);
    expect(reconciled(assembly, undefined, state)).toMatchObject({ events: [{}] });
    expect(reconciled(assembly, undefined, state)).toMatchObject({ events: [] });
  });

  test("is repaired from the kubelet's report, if enabled", () => {
    const node = osNode("n", { label: "windows", reports: "linux" });
    const assembly = podOSWith([node], REPAIR);
    expect(reconciled(assembly)).toEqual({ need: [LIVE] });
    expect(reconciled(assembly, node)).toMatchObject({
      writes: [
        {
          patch: [{ op: "add", path: "/metadata/labels/kubernetes.io~1os", value: "linux" }],
          of: { resource: "nodes", name: "n" },
          resourceVersion: "7",
        },
      ],
      events: [{ message: expect.stringContaining("repaired") }],
    });
    const bare = osNode("n", { reports: "linux" });
    expect(reconciled(podOSWith([bare], REPAIR), bare)).toMatchObject({
      writes: [{ patch: [{ path: "/metadata/labels", value: { "kubernetes.io/os": "linux" } }] }],
    });
    const right = osNode("n", { label: "linux", reports: "linux" });
    expect(reconciled(assembly, right), "the kubelet was faster").toEqual({ writes: [] });
  });
});

test("kubelets that do not refuse are reported", () => {
  for (const [kubelet, reported] of [
    ["v1.22.17", true],
    ["v1.23.0", false],
    ["v1.22.0-eks-1", true],
    ["?", false],
  ] as const) {
    const result = reconciled(podOSWith([osNode("n", { label: "linux", reports: "linux", kubelet })]));
    const reasons = "events" in result ? (result.events ?? []).map(({ reason }) => reason) : [];
    expect(reasons, kubelet).toEqual(reported ? ["KubeletIgnoresPodOS"] : []);
  }
});

test("gauges count both", () => {
  const { view } = podOSWith([
    osNode("a", { label: "windows", reports: "linux" }),
    osNode("b", { label: "linux", reports: "linux", kubelet: "v1.20.0" }),
  ]);
  expect(reconciler.figures?.(reconciler.initialState(), { view })).toEqual([
    { metric: "usher_pod_os_drifted_nodes", labels: {}, value: 1 },
    { metric: "usher_pod_os_old_kubelets", labels: {}, value: 1 },
  ]);
});

test("a deleted node is removed from the state", () => {
  const state = reconciler.initialState();
  state.set("n", "x");
  const { view } = podOSWith([]);
  expect(
    reconciler.keys({ resource: "nodes", namespace: "", name: "n", object: undefined }, state, { view }),
  ).toEqual([]);
  expect(state.size).toBe(0);
});

test("nothing is reported or repaired for a node being deleted, nor with the gate off", () => {
  const drifted = osNode("n", { label: "windows", reports: "linux" });
  const metadata = { ...(drifted["metadata"] as JsonObject), deletionTimestamp: "2026-11-16T00:00:00Z" };
  expect(reconciled(podOSWith([{ ...drifted, metadata }], REPAIR))).toEqual({ writes: [] });
  const off = podSecurityWith({ settings: { os: REPAIR }, gate: false });
  off.apply([{ resource: "nodes", namespace: "", name: "n", object: drifted }]);
  expect(reconciled(off)).toEqual({ writes: [] });
});
