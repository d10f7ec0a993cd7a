import { describe, expect, it, vi } from "vitest";
import { arrived, left, node, nodeLabelsWith, owned, rule } from "../../../../test/builders/node.ts";
import {
  initialKeysOf,
  KEY,
  keysOf,
  LEDGER,
  OWNED,
  RULES,
  reconciled,
  right,
  SWEEP,
  set,
} from "../../../../test/builders/node-reconcile.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import { describeKey } from "../../../core/module/reconciler.ts";
import type { Change } from "../../../core/view/view.ts";
import { RuleIndex } from "../rules/rule-index.ts";
import { type NodeLabelsKey, nodeKey, policyKey } from "./keys.ts";
import { nodeLabelsReconciler as reconciler } from "./reconciler.ts";

function unique(keys: readonly NodeLabelsKey[]): NodeLabelsKey[] {
  return [...new Map(keys.map((key) => [describeKey(key), key])).values()];
}

function sorted(keys: readonly NodeLabelsKey[]): NodeLabelsKey[] {
  return keys.toSorted((a, b) => (describeKey(a) < describeKey(b) ? -1 : 1));
}

/** All keys of these, and how many each step of a sweep yielded. */
function followed(
  assembly: Assembly,
  first: readonly NodeLabelsKey[],
): { keys: NodeLabelsKey[]; steps: number[] } {
  const keys = unique(first);
  const steps: number[] = [];
  for (const key of keys) {
    if (key.kind !== "sweep") continue;
    const { writes, enqueue = [] } = reconciled(assembly, key, []);
    expect(writes).toEqual([]);
    steps.push(enqueue.length);
    keys.push(...enqueue);
  }
  return { keys, steps };
}

describe("the keys of a changed rule are only the nodes that it affects", () => {
  const nodes = Array.from({ length: 20 }, (_, i) => right(`w-${i}`));
  const base = [set("r", ["w-.*"], { [KEY]: "1" }), ...nodes];
  const nodeNames = (keys: readonly NodeLabelsKey[]) =>
    keys.flatMap((key) => (key.kind === "node" ? [key.name] : []));

  it.each<[string, Change, number]>([
    ["another value: all of its", arrived(set("r", ["w-.*"], { [KEY]: "2" })), 20],
    ["a further label: all of its", arrived(set("r", ["w-.*"], { [KEY]: "1", "a/b": "" })), 20],
    ["narrowed, nothing owned: none", arrived(set("r", ["w-3"], { [KEY]: "1" })), 0],
    ["deleted, nothing owned: none", left(set("r", ["w-.*"], {})), 0],
    ["a new one for one node: that", arrived(set("s", ["w-7"], { "a/b": "1" })), 1],
    ["a new one that agrees: none", arrived(set("s", ["w-7"], { [KEY]: "1" })), 0],
    ["a new one that loses: none", arrived(set("z", ["w-7"], { [KEY]: "2" })), 0],
    ["a new one that wins: that", arrived(set("z", ["w-7"], { [KEY]: "2" }, { priority: 1 })), 1],
    ["one for missing nodes: none", arrived(set("s", ["x.*"], { "a/b": "1" })), 0],
    [
      "only its metadata: none",
      arrived(rule("r", { nodeNamePatterns: ["w-.*"], labels: { [KEY]: "1" } }, { finalizers: ["x"] })),
      0,
    ],
    ["an ownership, all covered: none", arrived(owned("o", { domain: "test.openshift.io" })), 0],
    ["an ownership of other labels: none", arrived(owned("o", { domain: "example.com" })), 0],
  ])("%s", (_what, change, count) => {
    expect(nodeNames(keysOf(nodeLabelsWith(base), change))).toHaveLength(count);
  });

  it("if its labels are owned, those that it no longer covers", () => {
    const assembly = nodeLabelsWith([...base, owned("o", { domain: "test.openshift.io" })]);
    expect(nodeNames(keysOf(assembly, arrived(set("r", ["w-1.*"], { [KEY]: "1" }))))).toHaveLength(9);
    expect(nodeNames(keysOf(assembly, left(set("r", ["w-1.*"], {}))))).toHaveLength(11);
  });

  it("the key of changed tallies is the policy alone", () => {
    const change = arrived(set("r", ["w-.*"], { [KEY]: "2" }));
    const key = policyKey(change.resource, change.namespace, change.name);
    expect(reconciler.tallyKeys?.(change)).toEqual([key]);
  });

  it("very many nodes are found a step at a time", () => {
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
    expect(nodeNames(keys).sort()).toEqual(many.map((one) => nameOf(one)).sort());
    // A rule that conflicts on the very last node is named as well.
    expect(keys).toContainEqual(policyKey(RULES, "default", "q"));
    expect(reconciled(assembly, SWEEP, []).enqueue).toEqual([]);
  });

  it("very many rules share one sweep, with another round for later changes", () => {
    const many = Array.from({ length: 1_000 }, (_, i) => right(`w-${i}`));
    const rules = Array.from({ length: 100 }, (_, i) => set(`r${i}`, [`.*[05]`], { [`a/k${i}`]: "1" }));
    const assembly = nodeLabelsWith([...rules, ...many]);
    const keys = Array.from({ length: 100 }, (_, i) =>
      keysOf(assembly, arrived(set(`r${i}`, [`.*[07]`], { [`a/k${i}`]: "2", [KEY]: `${i}` }))),
    );
    const after = followed(assembly, keys.flat());
    // Ten times a hundred nodes a round, and some that end by the rules that were tried.
    expect(after.steps.length).toBeLessThan(60);
    const affected = many.map((one) => nameOf(one)).filter((name) => /[07]$/.test(name));
    expect(nodeNames(after.keys)).toEqual(expect.arrayContaining(affected));
    for (let i = 0; i < 100; i++) expect(after.keys).toContainEqual(policyKey(RULES, "default", `r${i}`));
  });

  it("during a sweep, also nodes of a rule that changes in the meantime", () => {
    const many = ["a", "b"].flatMap((x) => Array.from({ length: 300 }, (_, i) => right(`${x}-${i}`)));
    const rules = [set("a", ["a-.*"], { [KEY]: "1" }), set("b", ["b-.*"], { [KEY]: "1" })];
    const assembly = nodeLabelsWith([...rules, ...many]);
    const first = keysOf(assembly, arrived(set("b", ["b-.*"], { [KEY]: "2" })));
    const second = keysOf(assembly, arrived(set("a", ["a-.*"], { [KEY]: "2" })));
    expect(nodeNames(second)).toEqual([]);
    expect(second).toContainEqual(SWEEP);
    const { keys } = followed(assembly, [...first, ...second]);
    expect(new Set(nodeNames(keys)).size).toBe(600);
  });

  it("a rule for whole names does not wait for a sweep", () => {
    const many = Array.from({ length: 1_000 }, (_, i) => right(`w-${i}`));
    const assembly = nodeLabelsWith([set("r", ["w-.*"], { [KEY]: "1" }), ...many]);
    expect(keysOf(assembly, arrived(set("r", ["w-.*"], { [KEY]: "2" })))).toContainEqual(SWEEP);
    const keys = keysOf(assembly, arrived(set("one", ["w-999"], { "a/b": "1" })));
    expect(keys).toEqual([policyKey(RULES, "default", "one"), nodeKey("w-999")]);
  });

  it("nodes whose label no rule sets any longer, for rules that select by it", () => {
    const picks = rule("s", { nodeSelector: { matchLabels: { [KEY]: "1" } }, labels: { "a/b": "" } });
    const assembly = nodeLabelsWith([...base, picks]);
    expect(nodeNames(keysOf(assembly, left(set("r", ["w-.*"], {}))))).toHaveLength(20);
  });

  it("the rules that select by a label of it, and the rules that those conflict with", () => {
    const selects = (name: string, labels: Record<string, string>) =>
      rule(name, { nodeSelector: { matchLabels: { rack: "7" } }, labels });
    const p = set("p", ["n-0"], { "a/b": "p" });
    const known = [selects("s", { "a/b": "s" }), p, set("far", ["m"], { "c/d": "far" })];
    const assembly = nodeLabelsWith([...known, node("n-0", { rack: "7" }), node("m")]);
    const racks = set("racks", ["x"], { rack: "8" });
    for (const change of [arrived(racks), left(racks), arrived(owned("o", { namePattern: "rack" }))]) {
      const keys = keysOf(assembly, change).filter((key) => key.kind === "policy" && key.resource === RULES);
      expect(sorted(keys.filter((key) => !describeKey(key).endsWith("racks")))).toEqual([
        policyKey(RULES, "default", "p"),
        policyKey(RULES, "default", "s"),
      ]);
    }
  });

  it("a rule with a nodeSelector, and the rules that it conflicts with on matching nodes", () => {
    const selects = (value: string) =>
      rule("s", { nodeSelector: { matchLabels: { rack: "7" } }, labels: { "a/b": value } });
    const others = [set("p", ["n-0"], { "a/b": "p" }), set("far", ["m"], { "a/b": "far" })];
    const assembly = nodeLabelsWith([selects("1"), ...others, node("n-0", { rack: "7" }), node("m")]);
    const keys = keysOf(assembly, arrived(selects("2"))).filter((key) => key.kind === "policy");
    expect(keys).toEqual([policyKey(RULES, "default", "s"), policyKey(RULES, "default", "p")]);
  });

  it("itself and the rules that it conflicts with, of all that set the same key", () => {
    const other = rule("q", { nodeNamePatterns: ["w-1"], labels: { [KEY]: "9" } }, { namespace: "b" });
    const elsewhere = Array.from({ length: 50 }, (_, i) => set(`e${i}`, [`x-${i}`], { [KEY]: `${i}` }));
    const assembly = nodeLabelsWith([...base, other, ...elsewhere, node("x-1", { [KEY]: "1" })]);
    const keys = keysOf(assembly, arrived(set("r", ["w-.*"], { [KEY]: "2" })));
    expect(keys.filter((key) => key.kind === "policy")).toEqual([
      policyKey(RULES, "default", "r"),
      policyKey(RULES, "b", "q"),
    ]);
  });
});

describe("the keys of a changed node", () => {
  it("includes the node if it needs work, and the rules that count it if it was created or deleted", () => {
    const assembly = nodeLabelsWith([set("r", ["w-.*"], { [KEY]: "1" })]);
    expect(keysOf(assembly, arrived(node("w-0")))).toEqual([
      nodeKey("w-0"),
      policyKey(RULES, "default", "r"),
    ]);
    expect(keysOf(assembly, arrived(right("w-0")))).toEqual([]);
    expect(keysOf(assembly, arrived(right("w-0", "2")))).toEqual([nodeKey("w-0")]);
    expect(keysOf(assembly, left(node("w-0")))).toEqual([policyKey(RULES, "default", "r")]);
    expect(keysOf(assembly, arrived(node("x")))).toEqual([]);
  });

  it("includes all rules whose match changes with a label, else none", () => {
    const selecting = rule("s", { nodeSelector: { matchLabels: { rack: "7" } }, labels: { "a/b": "s" } });
    const p = set("p", ["n-0"], { "a/b": "p" });
    const done = { "a/b": "p" };
    const assembly = nodeLabelsWith([selecting, p, node("n-0", { rack: "7", ...done })]);
    const both = [policyKey(RULES, "default", "p"), policyKey(RULES, "default", "s")];
    expect(keysOf(assembly, arrived(node("n-0", { rack: "8", ...done })))).toEqual(
      expect.arrayContaining(both),
    );
    expect(keysOf(assembly, arrived(node("n-0", { rack: "9", ...done })))).toEqual([]);
    expect(keysOf(assembly, arrived(node("n-0", { rack: "7", ...done })))).toEqual(both);
  });

  it("a new leader compares some nodes at a time, the fewer the more rules are tried for each", () => {
    const rules = Array.from({ length: 500 }, (_, i) => set(`r${i}`, [`.*[xy]${i}.*`], { "a/b": `${i}` }));
    const nodes = Array.from({ length: 400 }, (_, i) => node(`w-x${i}`));
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const meaning = vi.spyOn(RuleIndex.prototype, "matching");
    const first = initialKeysOf(assembly).filter((key) => key.kind !== "policy");
    expect(meaning.mock.calls.length).toBeLessThan(100);
    meaning.mockRestore();
    // Another that begins to lead elsewhere is nothing to this one.
    const other = nodeLabelsWith([]);
    expect(initialKeysOf(other)).toEqual([LEDGER]);
    const { keys } = followed(assembly, first);
    expect(keys.filter((key) => key.kind === "node")).toHaveLength(400);
  });

  it("a new leader reconciles nodes that need work, and every policy", () => {
    const assembly = nodeLabelsWith([
      set("r", ["w-.*"], { [KEY]: "1" }),
      owned("o", { domain: "a.b" }),
      right("w-0"),
      node("w-1"),
    ]);
    expect(initialKeysOf(assembly)).toEqual([
      LEDGER,
      nodeKey("w-1"),
      policyKey(RULES, "default", "r"),
      policyKey(OWNED, "default", "o"),
    ]);
  });
});
