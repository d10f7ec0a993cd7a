import { describe, expect, it } from "vitest";
import { arrived, left, node, nodeLabelsWith, owned, rule } from "../../../test/builders/node.ts";
import type { Assembly } from "../../core/assembly.ts";
import { at, type JsonObject, stringAt } from "../../core/json.ts";
import { type Fact, Facts, type Need } from "../../core/need.ts";
import type { Plan } from "../../core/plan.ts";
import type { Change } from "../../core/view.ts";
import { nodeLabelsPlanner as planner } from "./plan.ts";

const NOW = 1_700_000_000_000;
const RULES = "labels.node-labels.openshift.io";
const OWNED = "ownedlabels.node-labels.openshift.io";
const KEY = "test.openshift.io/foo1";

const set = (name: string, patterns: string[], labels: JsonObject, more: JsonObject = {}) =>
  rule(name, { nodeNamePatterns: patterns, labels, ...more });
const right = (name: string, value = "1") => node(name, { [KEY]: value });
const stored = (object: JsonObject, version = "7"): JsonObject => ({
  ...object,
  metadata: { ...(object["metadata"] as JsonObject), resourceVersion: version },
});

/** Which keys a change touches, in an assembly that takes it in. */
function keysOf(assembly: Assembly, change: Change): string[] {
  const [real] = assembly.apply([change]);
  return real === undefined ? [] : [...planner.keys(real, assembly.view, assembly)];
}

/** The plan of a key, with these objects in the API server. */
function planOf(
  assembly: Assembly,
  key: string,
  objects: readonly JsonObject[],
  more: { now?: number; failure?: (key: string) => string | undefined } = {},
): Plan & { asked: number } {
  const facts = new Facts();
  const found = (need: Need): Fact => {
    if (!("get" in need)) return { failed: "not expected" };
    const { name, namespace } = need.get;
    const object = objects.find(
      (one) =>
        at(one, "metadata", "name") === name &&
        (stringAt(one, "metadata", "namespace") ?? "") === (namespace ?? ""),
    );
    return object === undefined ? { absent: true } : { found: object, complete: true };
  };
  for (let asked = 0; ; ) {
    const result = planner.plan(key, { view: assembly.view, facts, now: NOW, assembly, ...more });
    if (!("need" in result)) return { ...result, asked };
    for (const need of result.need) facts.set(need, found(need));
    asked += result.need.length;
  }
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
      { apply: { kind: "ConfigMap", data: { taints: "a=b:NoExecute" } } },
    ]);
    const there = {
      metadata: { name: "usher-node-labels", namespace: "usher-system" },
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

describe("the plan of a policy", () => {
  const rules = [set("a", ["w-.*"], { [KEY]: "1" }), set("b", ["w-0"], { [KEY]: "2" })];
  const nodes = [right("w-0"), right("w-1"), node("x")];

  it("counts nodes and conflicts, and tells of a new one once", () => {
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const loser = rules[1] as JsonObject;
    const plan = planOf(assembly, `policy ${RULES} default/b`, [stored(loser)]);
    const status = at(plan.writes as never, 0, "status") as JsonObject;
    expect(status).toMatchObject({
      observedGeneration: 1,
      matchedNodes: 1,
      conflictCount: 1,
      conflicts: [{ key: KEY, with: "default/a", wins: false, nodes: 1 }],
    });
    expect(plan.events).toMatchObject([
      {
        type: "Warning",
        reason: "LabelConflict",
        regarding: { kind: "Labels", namespace: "default", name: "b" },
        message: expect.stringMatching(/default\/a wins \(USHER-L01\)/),
      },
    ]);
    expect(planOf(assembly, `policy ${RULES} default/b`, [stored({ ...loser, status })]).writes).toEqual([]);
    const winner = planOf(assembly, `policy ${RULES} default/a`, [stored(rules[0] as JsonObject)]);
    expect(at(winner.writes as never, 0, "status")).toMatchObject({
      matchedNodes: 2,
      conflicts: [{ with: "default/b", wins: true }],
    });
  });

  it("counts a rule that stays as it is once in five seconds, and a changed one at once", () => {
    const [first] = rules;
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const key = `policy ${RULES} default/a`;
    const there = [stored(first as JsonObject)];
    expect(planOf(assembly, key, there).writes).toHaveLength(1);
    expect(planOf(assembly, key, there, { now: NOW + 2_000 })).toMatchObject({
      writes: [],
      again: 3,
      asked: 0,
    });
    expect(planOf(assembly, key, there, { now: NOW + 5_000 }).writes).toHaveLength(1);
    assembly.apply([arrived(set("a", ["w-1"], { [KEY]: "1" }))]);
    expect(planOf(assembly, key, there, { now: NOW + 5_000 }).writes).toHaveLength(1);
  });

  it("says which node could not be written, and why", () => {
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const failure = (key: string) => (key === "node w-1" ? "patch nodes w-1 was refused" : undefined);
    const plan = planOf(assembly, `policy ${RULES} default/a`, [stored(rules[0] as JsonObject)], { failure });
    expect(at(plan.writes as never, 0, "status")).toMatchObject({ lastError: "patch nodes w-1 was refused" });
    expect(JSON.stringify(plan.writes)).toContain('"type":"Applied","status":"False","reason":"WriteFailed"');
    expect(planner.settled?.("node w-1", assembly.view, assembly)).toEqual([`policy ${RULES} default/a`]);
  });

  it("takes upstream's finalizer off, and no other", () => {
    const finalizers = ["mine/keep", "node-label-operator.openshift.io/finalizer"];
    const old = rule(
      "r",
      { nodeNamePatterns: ["w"], labels: {} },
      { finalizers, deletionTimestamp: "2026-01-01T00:00:00Z" },
    );
    const plan = planOf(nodeLabelsWith([old]), `policy ${RULES} default/r`, [stored(old)]);
    expect(plan.writes).toEqual([
      {
        patch: [{ op: "replace", path: "/metadata/finalizers", value: ["mine/keep"] }],
        of: { resource: RULES, namespace: "default", name: "r" },
        resourceVersion: "7",
      },
    ]);
  });

  it.each<[string, JsonObject, JsonObject | undefined, RegExp]>([
    [
      "what is wrong with it",
      set("r", ["["], {}),
      undefined,
      /"type":"Valid","status":"False","reason":"Invalid"/,
    ],
    [
      "what is doubtful",
      set("r", ["w"], { plain: "" }),
      undefined,
      /"type":"Valid","status":"True","reason":"Doubtful"/,
    ],
    ["who should write it", set("r", ["w"], { "a/b": "" }), undefined, /only administrators/],
    [
      "that its namespace does not count",
      set("r", ["w"], { "a/b": "" }),
      { namespace: "rules" },
      /only objects in namespace rules count/,
    ],
    ["that the module is off", set("r", ["w"], { "a/b": "" }), { enabled: false }, /switched off/],
  ])("says %s", (_what, object, settings, text) => {
    const plan = planOf(nodeLabelsWith([object], settings), `policy ${RULES} default/r`, [stored(object)]);
    expect(JSON.stringify(plan.writes)).toMatch(text);
  });

  it("says so where upstream's webhook is still there, whatever OLM called its configuration", () => {
    const webhook: JsonObject = {
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "mnode.kb.io-x7f2p" },
      webhooks: [{ name: "mnode.kb.io", clientConfig: { service: { path: "/label-v1-nodes" } } }],
    };
    const assembly = nodeLabelsWith(rules.slice(0, 1));
    expect(keysOf(assembly, arrived(webhook))).toEqual([`policy ${RULES} default/a`]);
    const plan = planOf(assembly, `policy ${RULES} default/a`, [stored(rules[0] as JsonObject)]);
    expect(JSON.stringify(plan.writes)).toMatch(/"type":"Alone","status":"False".*mnode.kb.io-x7f2p/);
    expect(keysOf(assembly, left(webhook))).toHaveLength(1);
  });

  it("of an ownership says whether it is valid", () => {
    const object = owned("o", { domain: "kubernetes.io" });
    const plan = planOf(nodeLabelsWith([object]), `policy ${OWNED} default/o`, [stored(object)]);
    expect(JSON.stringify(plan.writes)).toMatch(/"type":"Valid","status":"False".*USHER-L03/);
  });
});
