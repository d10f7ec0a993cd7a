import { describe, expect, it } from "vitest";
import { arrived, node, nodeLabelsWith, owned } from "../../../test/builders/node.ts";
import { KEY, keysOf, NOW, planOf, right, set, stored } from "../../../test/builders/node-plan.ts";
import { at, type JsonObject } from "../../core/json.ts";
import { nodeLabelsPlanner as planner } from "./plan.ts";

describe("the plan of a node", () => {
  const rules = [set("r", ["w-.*"], { [KEY]: "1" })];

  it("is one guarded patch of what is stored", () => {
    const assembly = nodeLabelsWith([...rules, node("w-0")]);
    const plan = planOf(assembly, "node w-0", [stored(node("w-0", { mine: "x" }), "42")]);
    expect(plan).toMatchObject({
      writes: [{ of: { resource: "nodes", name: "w-0" }, resourceVersion: "42" }],
      asked: 1,
    });
    expect(at(plan.writes as never, 0, "patch", 0)).toEqual({
      op: "add",
      path: "/metadata/labels/test.openshift.io~1foo1",
      value: "1",
    });
  });

  it.each<[string, JsonObject[], JsonObject[], number]>([
    ["where it is right, nothing is even asked", [right("w-0")], [], 0],
    ["where it is gone, nothing is done", [node("w-0")], [], 1],
    ["where it is right by now, nothing is done", [node("w-0")], [stored(right("w-0"))], 1],
    [
      "where it is being deleted, nothing is done",
      [node("w-0")],
      [stored(node("w-0", {}, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }))],
      1,
    ],
  ])("%s", (_what, known, there, asked) => {
    const assembly = nodeLabelsWith([...rules, ...known]);
    expect(planOf(assembly, "node w-0", there)).toMatchObject({ writes: [], asked });
  });

  it("waits with what an ownership that has just come would remove, and not with the rest", () => {
    const created = new Date(NOW - 20_000).toISOString();
    const assembly = nodeLabelsWith([
      set("r", ["w-.*"], { "a.b/c": "1" }),
      owned("o", { domain: "test.openshift.io" }, { creationTimestamp: created }),
      right("w-0"),
    ]);
    const plan = planOf(assembly, "node w-0", [stored(right("w-0"))]);
    expect(plan.again).toBe(40);
    expect(JSON.stringify(plan.writes)).toContain("a.b~1c");
    expect(JSON.stringify(plan.writes)).not.toContain("remove");
    const later = planOf(assembly, "node w-0", [stored(right("w-0"))], { now: NOW + 40_000 });
    expect(JSON.stringify(later.writes)).toContain(
      '"remove","path":"/metadata/labels/test.openshift.io~1foo1"',
    );
  });

  it("takes a taint off only where the ledger vouches for it", () => {
    const taints = [{ key: "dedicated", value: "edge", effect: "NoSchedule" }];
    const record = {
      "usher.dev/node-labels": JSON.stringify({
        taints: { "dedicated:NoSchedule": { rule: "default/gone", value: "edge" } },
      }),
    };
    const tainted = node("w-0", {}, { metadata: { annotations: record }, spec: { taints } });
    const ledger = (text: string): JsonObject => ({
      kind: "ConfigMap",
      metadata: { name: "usher-node-labels", namespace: "usher-system" },
      data: { taints: text },
    });
    const assembly = nodeLabelsWith([tainted]);
    const known = planOf(assembly, "node w-0", [
      stored(tainted),
      ledger("x=y:NoExecute\ndedicated=edge:NoSchedule"),
    ]);
    expect(JSON.stringify(known.writes)).toContain('"op":"remove","path":"/spec/taints"');
    const forged = planOf(assembly, "node w-0", [stored(tainted), ledger("x=y:NoExecute")]);
    expect(JSON.stringify(forged.writes)).not.toContain("/spec/taints");
  });

  it("the ledger is written where a rule has a taint that it does not know", () => {
    const assembly = nodeLabelsWith([
      set("r", ["w-.*"], {}, { taints: [{ key: "a", value: "b", effect: "NoExecute" }] }),
    ]);
    expect(planOf(assembly, "ledger", []).writes).toMatchObject([
      { apply: { kind: "ConfigMap", data: { taints: "a=b:NoExecute" } }, resourceVersion: undefined },
    ]);
    const metadata = { name: "usher-node-labels", namespace: "usher-system", resourceVersion: "7" };
    const other = { metadata, data: { taints: "x=y:NoExecute" } };
    expect(planOf(assembly, "ledger", [other]).writes).toMatchObject([
      { apply: { data: { taints: "x=y:NoExecute\na=b:NoExecute" } }, resourceVersion: "7" },
    ]);
    const there = {
      metadata,
      data: { taints: "a=b:NoExecute" },
    };
    expect(planOf(assembly, "ledger", [there]).writes).toEqual([]);
  });
});

describe("switched off", () => {
  const starting = { key: "usher.dev/starting", effect: "NoSchedule" };
  const theirs = { key: "theirs", effect: "NoSchedule" };
  const objects = [
    set("r", [".*"], { [KEY]: "1" }, { startupTaint: true, taints: [{ key: "t", effect: "NoExecute" }] }),
    owned("o", { domain: "old.example.com" }),
    node("held", { "old.example.com/x": "1" }, { spec: { taints: [theirs, starting] } }),
    node("free", { "old.example.com/x": "1" }),
  ];
  const off = () => nodeLabelsWith(objects, { enabled: false });

  it("whoever begins to lead looks at just the nodes with the startup taint, and takes off just that", () => {
    const assembly = off();
    const keys = [...(planner.all?.(assembly.view, assembly) ?? [])];
    expect(keys.filter((key) => key.startsWith("node "))).toEqual(["node held"]);
    const held = node("held", { "old.example.com/x": "1" }, { spec: { taints: [theirs, starting] } });
    expect(planOf(assembly, "node held", [stored(held)]).writes).toEqual([
      {
        patch: [{ op: "add", path: "/spec/taints", value: [theirs] }],
        of: { resource: "nodes", name: "held" },
        resourceVersion: "7",
      },
    ]);
  });

  it("a node that a replica of before still tainted is named, and so is none that is only unlabelled", () => {
    const late = node("late", {}, { spec: { taints: [starting] } });
    expect(keysOf(off(), arrived(late))).toContain("node late");
    expect(keysOf(off(), arrived(node("new"))).filter((key) => key.startsWith("node "))).toEqual([]);
  });

  it("a change of a rule names no node that it would label", () => {
    const keys = keysOf(off(), arrived(set("r", [".*"], { [KEY]: "2" })));
    expect(keys.filter((key) => key.startsWith("node "))).toEqual(["node held"]);
  });
});
