// The nodes on which the pods of the workloads in test/fixtures/kupid-workloads run.
import { expect } from "vitest";
import { stringAt } from "../../../src/core/json.ts";
import { eventually } from "../../cluster/access/wait.ts";
import type { PlacementStage } from "../fixtures/placement-stage.ts";

/** Nodes that any pod may run on. */
export const PLAIN = ["node-1", "node-2", "etcd-open"];

/** Labels of the pods, and the nodes on which they may run: a DaemonSet runs on all of them, the others on some. */
export interface Sample {
  readonly app?: string;
  readonly role?: string;
  readonly nodes: readonly string[];
  /** The DaemonSet's nodes, if they differ: nodeName does not apply to it. */
  readonly agents?: readonly string[];
  readonly because?: "all together on one node" | "no such scheduler";
}

/** The number of pods of each workload, except the DaemonSet. The CronJob's pods come from a Job created from it. */
const PODS = { proxy: 2, etcd: 2, defrag: 1, backup: 1, debug: 1 };

/** The nodes of each workload's pods; an empty string for a pending pod. */
async function places(stage: PlacementStage): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  for (const pod of await stage.items("pods?labelSelector=workload")) {
    const workload = stringAt(pod, "metadata", "labels", "workload") ?? "";
    found.set(workload, [...(found.get(workload) ?? []), stringAt(pod, "spec", "nodeName") ?? ""]);
  }
  return found;
}

export async function expectPlaces(
  stage: PlacementStage,
  { nodes, agents: daemons = nodes, because }: Sample,
): Promise<void> {
  const all = Object.values(PODS).reduce((sum, count) => sum + count, 0);
  const found = await eventually("all pods on the expected nodes", async () => {
    const now = await places(stage);
    const others = Object.keys(PODS).flatMap((name) => now.get(name) ?? []);
    const agents = now.get("agent") ?? [];
    if (others.length !== all) return undefined;
    if (because === "no such scheduler") return agents.length === PLAIN.length && now;
    const placed = others.every((node) => node !== "");
    if (because === "all together on one node") return placed && agents.some((node) => node !== "") && now;
    return placed && agents.length === daemons.length && agents.every((node) => node !== "") && now;
  });
  const agents = (found.get("agent") ?? []).filter((node) => node !== "");
  const others = Object.keys(PODS).flatMap((name) => found.get(name) ?? []);
  if (because === "no such scheduler") {
    expect([...agents, ...others].filter((node) => node !== "")).toEqual([]);
  } else if (because === "all together on one node") {
    expect(new Set([...agents, ...others]).size).toBe(1);
  } else {
    expect(agents.sort()).toEqual([...daemons].sort());
    for (const node of others) expect(nodes).toContain(node);
  }
}

export async function cleared(stage: PlacementStage): Promise<void> {
  const names = [
    "deployments/proxy",
    "statefulsets/etcd",
    "daemonsets/agent",
    "jobs/defrag",
    "cronjobs/backup",
  ];
  const background = { propagationPolicy: "Background" };
  for (const name of [...names, "jobs/backup-now"]) await stage.request("DELETE", name, background);
  await stage.request("DELETE", "pods/debug", { gracePeriodSeconds: 0 });
  await eventually("the pods gone", async () => {
    return (await stage.items("pods?labelSelector=workload")).length === 0;
  });
  // A DaemonSet of the same name may be created only when the old one is gone.
  for (const name of names) {
    await eventually(`${name} gone`, async () => (await stage.request("GET", name)).status === 404);
  }
}
