import { describe, expect, it } from "vitest";
import { arrived, left, node, nodeLabelsWith, owned, rule } from "../../../test/builders/node.ts";
import { KEY, keysOf, OWNED, planOf, RULES, right, set } from "../../../test/builders/node-plan.ts";
import { at } from "../../core/json.ts";
import type { Change } from "../../core/view.ts";
import { nodeLabelsPlanner as planner } from "./plan.ts";

describe("a change of a rule names just the nodes that it touches", () => {
  const nodes = Array.from({ length: 20 }, (_, i) => right(`w-${i}`));
  const base = [set("r", ["w-.*"], { [KEY]: "1" }), ...nodes];
  const nodeKeys = (keys: readonly string[]) => keys.filter((key) => key.startsWith("node "));

  it.each<[string, Change, number]>([
    ["another value: all of its", arrived(set("r", ["w-.*"], { [KEY]: "2" })), 20],
    ["a further label: all of its", arrived(set("r", ["w-.*"], { [KEY]: "1", "a/b": "" })), 20],
    ["narrowed, nothing owned: none", arrived(set("r", ["w-3"], { [KEY]: "1" })), 0],
    ["deleted, nothing owned: none", left(set("r", ["w-.*"], {})), 0],
    ["a new one for one node: that", arrived(set("s", ["w-7"], { "a/b": "1" })), 1],
    ["a new one that agrees: none", arrived(set("s", ["w-7"], { [KEY]: "1" })), 0],
    ["a new one that loses: none", arrived(set("z", ["w-7"], { [KEY]: "2" })), 0],
    ["a new one that wins: that", arrived(set("z", ["w-7"], { [KEY]: "2" }, { priority: 1 })), 1],
    ["one for nodes that are not there: none", arrived(set("s", ["x.*"], { "a/b": "1" })), 0],
    [
      "only its metadata: none",
      arrived(rule("r", { nodeNamePatterns: ["w-.*"], labels: { [KEY]: "1" } }, { finalizers: ["x"] })),
      0,
    ],
    ["an ownership, all covered: none", arrived(owned("o", { domain: "test.openshift.io" })), 0],
    ["an ownership of other labels: none", arrived(owned("o", { domain: "example.com" })), 0],
  ])("%s", (_what, change, count) => {
    expect(nodeKeys(keysOf(nodeLabelsWith(base), change))).toHaveLength(count);
  });

  it("where its labels are owned, those that it no longer covers", () => {
    const assembly = nodeLabelsWith([...base, owned("o", { domain: "test.openshift.io" })]);
    expect(nodeKeys(keysOf(assembly, arrived(set("r", ["w-1.*"], { [KEY]: "1" }))))).toHaveLength(9);
    expect(nodeKeys(keysOf(assembly, left(set("r", ["w-1.*"], {}))))).toHaveLength(11);
  });

  it("that it was applied more often touches its status alone, also while nodes are not right yet", () => {
    const change = arrived(set("r", ["w-.*"], { [KEY]: "2" }));
    const key = `policy ${change.resource} ${change.namespace}/${change.name}`;
    expect(planner.counted?.(change)).toEqual([key]);
  });

  it("of very many nodes some at a time, and in the end the same", () => {
    const many = Array.from({ length: 1_700 }, (_, i) => right(`w-${i}`));
    const assembly = nodeLabelsWith([
      set("r", ["w-.*"], { [KEY]: "1" }),
      set("q", ["w-1699"], { [KEY]: "9" }),
      ...many,
    ]);
    const keys = keysOf(assembly, arrived(set("r", ["w-.*"], { [KEY]: "2" }, { priority: 1 })));
    const steps: number[] = [];
    for (let at = 0; at < keys.length; at++) {
      const key = keys[at] ?? "";
      if (!key.startsWith("sweep ")) continue;
      const { writes, also = [] } = planOf(assembly, key, []);
      expect(writes).toEqual([]);
      steps.push(also.length);
      keys.push(...also);
    }
    expect(steps).toEqual([501, 501, 201]);
    expect(new Set(nodeKeys(keys))).toEqual(
      new Set(many.map((one) => `node ${at(one, "metadata", "name")}`)),
    );
    // Whoever quarrels about the very last node is named as well.
    expect(keys).toContain(`policy ${RULES} default/q`);
    expect(planOf(assembly, keys.find((key) => key.startsWith("sweep ")) ?? "", []).also).toEqual([]);
  });

  it("a rule that no longer sets a label lets others see it", () => {
    const picks = rule("s", { nodeSelector: { matchLabels: { [KEY]: "1" } }, labels: { "a/b": "" } });
    const assembly = nodeLabelsWith([...base, picks]);
    expect(nodeKeys(keysOf(assembly, left(set("r", ["w-.*"], {}))))).toHaveLength(20);
  });

  it("itself and the rules that it quarrels with, of all that set the same key", () => {
    const other = rule("q", { nodeNamePatterns: ["w-1"], labels: { [KEY]: "9" } }, { namespace: "b" });
    const elsewhere = Array.from({ length: 50 }, (_, i) => set(`e${i}`, [`x-${i}`], { [KEY]: `${i}` }));
    const assembly = nodeLabelsWith([...base, other, ...elsewhere, node("x-1", { [KEY]: "1" })]);
    const keys = keysOf(assembly, arrived(set("r", ["w-.*"], { [KEY]: "2" })));
    expect(keys.filter((key) => key.startsWith("policy "))).toEqual([
      `policy ${RULES} default/r`,
      `policy ${RULES} b/q`,
    ]);
  });
});

describe("a change of a node", () => {
  it("names it where it is not right, and the rules that count it where it came or went", () => {
    const assembly = nodeLabelsWith([set("r", ["w-.*"], { [KEY]: "1" })]);
    expect(keysOf(assembly, arrived(node("w-0")))).toEqual(["node w-0", `policy ${RULES} default/r`]);
    expect(keysOf(assembly, arrived(right("w-0")))).toEqual([]);
    expect(keysOf(assembly, arrived(right("w-0", "2")))).toEqual(["node w-0"]);
    expect(keysOf(assembly, left(node("w-0")))).toEqual([`policy ${RULES} default/r`]);
    expect(keysOf(assembly, arrived(node("x")))).toEqual([]);
  });

  it("whoever begins to lead looks at nodes that are not right, and at every policy", () => {
    const assembly = nodeLabelsWith([
      set("r", ["w-.*"], { [KEY]: "1" }),
      owned("o", { domain: "a.b" }),
      right("w-0"),
      node("w-1"),
    ]);
    expect([...(planner.all?.(assembly.view, assembly) ?? [])]).toEqual([
      "ledger",
      "node w-1",
      `policy ${RULES} default/r`,
      `policy ${OWNED} default/o`,
    ]);
  });
});
