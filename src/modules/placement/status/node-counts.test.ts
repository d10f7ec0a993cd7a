import { describe, expect, test } from "vitest";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import { Store } from "../../../core/view/store.ts";
import type { Change } from "../../../core/view/view.ts";
import { NodeCounts } from "./node-counts.ts";

const RESOURCE = "clusterpodschedulingpolicies.kupid.gardener.cloud";

function node(name: string, pool: string): Change {
  return { resource: "nodes", namespace: "", name, object: { metadata: { name, labels: { pool } } } };
}

function policy(name: string, pool: string): Change {
  const object = clusterPolicy(name, { podSelector: {}, namespaceSelector: {}, nodeSelector: { pool } });
  return { resource: RESOURCE, namespace: "", name, object };
}

function stage(policies: number) {
  const view = new Store();
  view.apply([node("a", "0"), node("b", "1")]);
  for (let i = 0; i < policies; i++) view.apply([policy(`p-${i}`, String(i))]);
  const counts = new NodeCounts();
  const outdated = (now: number) => {
    const { outdated: keys, requeueAfter } = counts.step([RESOURCE], view, now);
    return { names: keys.map(({ name }) => name), requeueAfter };
  };
  const record = () => {
    for (let i = 0; i < policies; i++)
      counts.record({ kind: "status", resource: RESOURCE, namespace: "", name: `p-${i}` }, i < 2 ? 1 : 0);
  };
  return { view, counts, outdated, record };
}

describe("nodes that policies select", () => {
  test("are not counted while no node changes", () => {
    const { outdated } = stage(3);
    expect(outdated(0)).toEqual({ names: [], requeueAfter: undefined });
  });

  test("only make statuses outdated whose number changed", () => {
    const { view, counts, outdated, record } = stage(3);
    record();
    view.apply([node("c", "2"), node("d", "elsewhere")]);
    counts.nodesChanged();
    expect(outdated(0).names).toEqual(["p-2"]);
  });

  test("are counted at most every 30 s, for any number of node changes", () => {
    const { view, counts, outdated, record } = stage(3);
    record();
    counts.nodesChanged();
    expect(outdated(0)).toEqual({ names: [], requeueAfter: undefined });
    view.apply([node("c", "2")]);
    counts.nodesChanged();
    expect(outdated(10_000)).toEqual({ names: [], requeueAfter: 20 });
    expect(outdated(30_000).names).toEqual(["p-2"]);
  });

  test("of many policies are counted in steps", () => {
    const { counts, outdated, record } = stage(250);
    record();
    counts.nodesChanged();
    const steps = [outdated(0), outdated(1), outdated(2)].map(({ requeueAfter }) => requeueAfter);
    expect(steps).toEqual([0.1, 0.1, undefined]);
  });
});
