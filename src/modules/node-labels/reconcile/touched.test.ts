import { describe, expect, it, vi } from "vitest";
import { arrived, left, node, nodeLabelsWith, owned, rule } from "../../../../test/builders/node.ts";
import { KEY, keysOf, OWNED, planOf, RULES, right, set } from "../../../../test/builders/node-plan.ts";
import type { Assembly } from "../../../core/evaluate/assembly.ts";
import { at } from "../../../core/json.ts";
import type { Change } from "../../../core/view/view.ts";
import { RuleIndex } from "../rules/rule-index.ts";
import { nodeLabelsReconciler as reconciler } from "./reconciler.ts";

/** All keys that come of these, and how many each step of a sweep brought. */
function followed(assembly: Assembly, first: readonly string[]): { keys: string[]; steps: number[] } {
  const keys = [...first];
  const steps: number[] = [];
  for (let at = 0; at < keys.length; at++) {
    const key = keys[at] ?? "";
    if (!key.startsWith("sweep")) continue;
    const { writes, also = [] } = planOf(assembly, key, []);
    expect(writes).toEqual([]);
    steps.push(also.length);
    keys.push(...also);
  }
  return { keys, steps };
}

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
    expect(reconciler.counted?.(change)).toEqual([key]);
  });

  it("of very many nodes some at a time, and in the end the same", () => {
    const many = Array.from({ length: 1_700 }, (_, i) => right(`w-${i}`));
    const assembly = nodeLabelsWith([
      set("r", ["w-.*"], { [KEY]: "1" }),
      set("q", ["w-1699"], { [KEY]: "9" }),
      ...many,
    ]);
    const { keys, steps } = followed(
      assembly,
      keysOf(assembly, arrived(set("r", ["w-.*"], { [KEY]: "2" }, { priority: 1 }))),
    );
    expect(steps).toHaveLength(16);
    expect(Math.max(...steps)).toBeLessThanOrEqual(102);
    expect(nodeKeys(keys).sort()).toEqual(many.map((one) => `node ${at(one, "metadata", "name")}`).sort());
    // Whoever quarrels about the very last node is named as well.
    expect(keys).toContain(`policy ${RULES} default/q`);
    expect(planOf(assembly, "sweep", []).also).toEqual([]);
  });

  it("for very many rules in one sweep, which goes round once more for those that come meanwhile", () => {
    const many = Array.from({ length: 1_000 }, (_, i) => right(`w-${i}`));
    const rules = Array.from({ length: 100 }, (_, i) => set(`r${i}`, [`.*[05]`], { [`a/k${i}`]: "1" }));
    const assembly = nodeLabelsWith([...rules, ...many]);
    const keys = Array.from({ length: 100 }, (_, i) =>
      keysOf(assembly, arrived(set(`r${i}`, [`.*[07]`], { [`a/k${i}`]: "2", [KEY]: `${i}` }))),
    );
    const after = followed(assembly, [...new Set(keys.flat())]);
    // Ten times a hundred nodes a round, and some that end by the rules that were tried.
    expect(after.steps.length).toBeLessThan(60);
    const touched = many
      .map((one) => `node ${at(one, "metadata", "name")}`)
      .filter((key) => /[07]$/.test(key));
    expect(nodeKeys(after.keys)).toEqual(expect.arrayContaining(touched));
    for (let i = 0; i < 100; i++) expect(after.keys).toContain(`policy ${RULES} default/r${i}`);
  });

  it("where a sweep is under way, also for other nodes than those of the first", () => {
    const many = ["a", "b"].flatMap((x) => Array.from({ length: 300 }, (_, i) => right(`${x}-${i}`)));
    const rules = [set("a", ["a-.*"], { [KEY]: "1" }), set("b", ["b-.*"], { [KEY]: "1" })];
    const assembly = nodeLabelsWith([...rules, ...many]);
    const first = keysOf(assembly, arrived(set("b", ["b-.*"], { [KEY]: "2" })));
    const second = keysOf(assembly, arrived(set("a", ["a-.*"], { [KEY]: "2" })));
    expect(nodeKeys(second)).toEqual([]);
    expect(second).toContain("sweep");
    const { keys } = followed(assembly, [...new Set([...first, ...second])]);
    expect(new Set(nodeKeys(keys)).size).toBe(600);
  });

  it("where a sweep is under way, a rule for whole names does not wait for it", () => {
    const many = Array.from({ length: 1_000 }, (_, i) => right(`w-${i}`));
    const assembly = nodeLabelsWith([set("r", ["w-.*"], { [KEY]: "1" }), ...many]);
    expect(keysOf(assembly, arrived(set("r", ["w-.*"], { [KEY]: "2" })))).toContain("sweep");
    const keys = keysOf(assembly, arrived(set("one", ["w-999"], { "a/b": "1" })));
    expect(keys).toEqual([`policy ${RULES} default/one`, "node w-999"]);
  });

  it("a rule that no longer sets a label lets others see it", () => {
    const picks = rule("s", { nodeSelector: { matchLabels: { [KEY]: "1" } }, labels: { "a/b": "" } });
    const assembly = nodeLabelsWith([...base, picks]);
    expect(nodeKeys(keysOf(assembly, left(set("r", ["w-.*"], {}))))).toHaveLength(20);
  });

  it("and the rules that look at a label of it, which they see now or no longer, with those they quarrel with", () => {
    const selects = (name: string, labels: Record<string, string>) =>
      rule(name, { nodeSelector: { matchLabels: { rack: "7" } }, labels });
    const p = set("p", ["n-0"], { "a/b": "p" });
    const known = [selects("s", { "a/b": "s" }), p, set("far", ["m"], { "c/d": "far" })];
    const assembly = nodeLabelsWith([...known, node("n-0", { rack: "7" }), node("m")]);
    const racks = set("racks", ["x"], { rack: "8" });
    for (const change of [arrived(racks), left(racks), arrived(owned("o", { namePattern: "rack" }))]) {
      const keys = keysOf(assembly, change).filter((key) => key.startsWith("policy labels"));
      expect(keys.filter((key) => !key.endsWith("racks")).sort()).toEqual([
        `policy ${RULES} default/p`,
        `policy ${RULES} default/s`,
      ]);
    }
  });

  it("a rule by labels, and just those that it quarrels with on nodes with these labels", () => {
    const selects = (value: string) =>
      rule("s", { nodeSelector: { matchLabels: { rack: "7" } }, labels: { "a/b": value } });
    const others = [set("p", ["n-0"], { "a/b": "p" }), set("far", ["m"], { "a/b": "far" })];
    const assembly = nodeLabelsWith([selects("1"), ...others, node("n-0", { rack: "7" }), node("m")]);
    const keys = keysOf(assembly, arrived(selects("2"))).filter((key) => key.startsWith("policy"));
    expect(keys).toEqual([`policy ${RULES} default/s`, `policy ${RULES} default/p`]);
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

  it("names all rules that meant it or mean it where a label of it makes a difference to one, and else none", () => {
    const selecting = rule("s", { nodeSelector: { matchLabels: { rack: "7" } }, labels: { "a/b": "s" } });
    const p = set("p", ["n-0"], { "a/b": "p" });
    const done = { "a/b": "p" };
    const assembly = nodeLabelsWith([selecting, p, node("n-0", { rack: "7", ...done })]);
    const both = [`policy ${RULES} default/p`, `policy ${RULES} default/s`];
    expect(keysOf(assembly, arrived(node("n-0", { rack: "8", ...done })))).toEqual(
      expect.arrayContaining(both),
    );
    expect(keysOf(assembly, arrived(node("n-0", { rack: "9", ...done })))).toEqual([]);
    expect(keysOf(assembly, arrived(node("n-0", { rack: "7", ...done })))).toEqual(both);
  });

  it("whoever begins to lead looks at some nodes at a time, the fewer the more rules are tried for each", () => {
    const rules = Array.from({ length: 500 }, (_, i) => set(`r${i}`, [`.*[xy]${i}.*`], { "a/b": `${i}` }));
    const nodes = Array.from({ length: 400 }, (_, i) => node(`w-x${i}`));
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const meaning = vi.spyOn(RuleIndex.prototype, "meaning");
    const first = [...(reconciler.all?.(assembly.view, assembly) ?? [])].filter(
      (key) => !key.startsWith("policy"),
    );
    expect(meaning.mock.calls.length).toBeLessThan(100);
    meaning.mockRestore();
    // Another that begins to lead elsewhere is nothing to this one.
    const other = nodeLabelsWith([]);
    expect([...(reconciler.all?.(other.view, other) ?? [])]).toEqual(["ledger"]);
    const { keys } = followed(assembly, first);
    expect(keys.filter((key) => key.startsWith("node "))).toHaveLength(400);
  });

  it("whoever begins to lead looks at nodes that are not right, and at every policy", () => {
    const assembly = nodeLabelsWith([
      set("r", ["w-.*"], { [KEY]: "1" }),
      owned("o", { domain: "a.b" }),
      right("w-0"),
      node("w-1"),
    ]);
    expect([...(reconciler.all?.(assembly.view, assembly) ?? [])]).toEqual([
      "ledger",
      "node w-1",
      `policy ${RULES} default/r`,
      `policy ${OWNED} default/o`,
    ]);
  });
});
