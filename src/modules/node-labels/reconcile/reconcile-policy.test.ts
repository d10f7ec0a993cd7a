import { describe, expect, it } from "vitest";
import { arrived, left, node, nodeLabelsWith, owned, rule } from "../../../../test/builders/node.ts";
import {
  KEY,
  keysOf,
  NOW,
  OWNED,
  RULES,
  reconciled,
  right,
  set,
  stateOf,
  stored,
} from "../../../../test/builders/node-reconcile.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { type NodeLabelsKey, nodeKey, policyKey } from "./keys.ts";
import { nodeLabelsReconciler as reconciler } from "./reconciler.ts";

describe("reconciling a policy", () => {
  const rules = [set("a", ["w-.*"], { [KEY]: "1" }), set("b", ["w-0"], { [KEY]: "2" })];
  const nodes = [right("w-0"), right("w-1"), node("x")];

  it("counts nodes and conflicts, with one event for a new conflict", () => {
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const loser = rules[1] as JsonObject;
    const result = reconciled(assembly, policyKey(RULES, "default", "b"), [stored(loser)]);
    const status = at(result.writes as never, 0, "status") as JsonObject;
    expect(status).toMatchObject({
      observedGeneration: 1,
      matchedNodes: 1,
      conflictCount: 1,
      conflicts: [{ key: KEY, with: "default/a", wins: false, nodes: 1 }],
    });
    expect(result.events).toMatchObject([
      {
        type: "Warning",
        reason: "LabelConflict",
        regarding: { kind: "Labels", namespace: "default", name: "b" },
        message: expect.stringMatching(/default\/a wins \(USHER-L01\)/),
      },
    ]);
    expect(
      reconciled(assembly, policyKey(RULES, "default", "b"), [stored({ ...loser, status })]).writes,
    ).toEqual([]);
    const winner = reconciled(assembly, policyKey(RULES, "default", "a"), [stored(rules[0] as JsonObject)]);
    expect(at(winner.writes as never, 0, "status")).toMatchObject({
      matchedNodes: 2,
      conflicts: [{ with: "default/b", wins: true }],
    });
  });

  it("has events for listed conflicts, and none for the rest", () => {
    const others = Array.from({ length: 20 }, (_, i) => set(`o${i}`, ["w-0"], { [KEY]: `${i + 2}` }));
    const [, loser = {}] = rules;
    const assembly = nodeLabelsWith([loser, ...others, ...nodes]);
    const key = policyKey(RULES, "default", "b");
    const result = reconciled(assembly, key, [stored(loser)]);
    expect(result.events).toHaveLength(4);
    const status = at(result.writes as never, 0, "status") as JsonObject;
    assembly.apply([arrived(right("w-0", "9"))]);
    const later = { ...status, matchedNodes: 7 };
    const again = reconciled(assembly, key, [stored({ ...loser, status: later })], { now: NOW + 6_000 });
    expect(again.writes).toHaveLength(1);
    expect(again.events).toEqual([]);
  });

  it("counts an unchanged rule once in five seconds, and a changed one immediately", () => {
    const [first] = rules;
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const key = policyKey(RULES, "default", "a");
    const there = [stored(first as JsonObject)];
    expect(reconciled(assembly, key, there).writes).toHaveLength(1);
    expect(reconciled(assembly, key, there, { now: NOW + 2_000 })).toMatchObject({
      writes: [],
      requeueAfter: 3,
      asked: 0,
    });
    expect(reconciled(assembly, key, there, { now: NOW + 5_000 }).writes).toHaveLength(1);
    keysOf(assembly, arrived(set("a", ["w-1"], { [KEY]: "1" })));
    expect(reconciled(assembly, key, there, { now: NOW + 5_000 }).writes).toHaveLength(1);
  });

  it("counts immediately if its status could not be written, or the clock was set back", () => {
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const key = policyKey(RULES, "default", "a");
    const there = [stored(rules[0] as JsonObject)];
    expect(reconciled(assembly, key, there).writes).toHaveLength(1);
    const failure = (one: NodeLabelsKey) => (one === key ? "503" : undefined);
    expect(reconciled(assembly, key, there, { now: NOW + 1_000, failure }).writes).toHaveLength(1);
    expect(reconciled(assembly, key, there, { now: NOW + 2_000 })).toMatchObject({
      writes: [],
      requeueAfter: 4,
    });
    const back = reconciled(assembly, key, there, { now: NOW - 3_600_000 });
    expect(back.writes).toHaveLength(1);
    expect(back.requeueAfter).toBeUndefined();
  });

  it("reports which node could not be written, and why", () => {
    const assembly = nodeLabelsWith([...rules, ...nodes]);
    const failure = (key: NodeLabelsKey) =>
      key.kind === "node" && key.name === "w-1" ? "patch nodes w-1 was refused" : undefined;
    const result = reconciled(assembly, policyKey(RULES, "default", "a"), [stored(rules[0] as JsonObject)], {
      failure,
    });
    expect(at(result.writes as never, 0, "status")).toMatchObject({
      lastError: "patch nodes w-1 was refused",
    });
    expect(JSON.stringify(result.writes)).toContain(
      '"type":"Applied","status":"False","reason":"WriteFailed"',
    );
    expect(
      reconciler.failureKeys?.(nodeKey("w-1"), stateOf(assembly), { view: assembly.view, assembly }),
    ).toEqual([policyKey(RULES, "default", "a")]);
  });

  it("removes upstream's finalizer, and no other", () => {
    const finalizers = ["mine/keep", "node-label-operator.openshift.io/finalizer"];
    const old = rule(
      "r",
      { nodeNamePatterns: ["w"], labels: {} },
      { finalizers, deletionTimestamp: "2026-01-01T00:00:00Z" },
    );
    const result = reconciled(nodeLabelsWith([old]), policyKey(RULES, "default", "r"), [stored(old)]);
    expect(result.writes).toEqual([
      {
        patch: [{ op: "replace", path: "/metadata/finalizers", value: ["mine/keep"] }],
        of: { resource: RULES, namespace: "default", name: "r" },
        resourceVersion: "7",
      },
    ]);
  });

  it.each<[string, JsonObject, JsonObject | undefined, RegExp]>([
    ["its errors", set("r", ["["], {}), undefined, /"type":"Valid","status":"False","reason":"Invalid"/],
    [
      "its warnings",
      set("r", ["w"], { plain: "" }),
      undefined,
      /"type":"Valid","status":"True","reason":"ValidWithWarnings"/,
    ],
    [
      "that only administrators should write it",
      set("r", ["w"], { "a/b": "" }),
      undefined,
      /only administrators/,
    ],
    [
      "that its namespace is out of scope",
      set("r", ["w"], { "a/b": "" }),
      { namespace: "rules" },
      /restricts node-labels to namespace rules/,
    ],
  ])("reports %s", (_what, object, settings, text) => {
    const result = reconciled(nodeLabelsWith([object], settings), policyKey(RULES, "default", "r"), [
      stored(object),
    ]);
    expect(JSON.stringify(result.writes)).toMatch(text);
  });

  const webhook: JsonObject = {
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "mnode.kb.io-x7f2p" },
    webhooks: [{ name: "mnode.kb.io", clientConfig: { service: { path: "/label-v1-nodes" } } }],
  };

  it("keeps upstream's finalizer while upstream runs, which would add it again, and reports that", () => {
    const finalizers = ["node-label-operator.openshift.io/finalizer"];
    const spec = { nodeNamePatterns: ["w"], labels: {} };
    const kept = rule("r", spec, { finalizers });
    const beside = nodeLabelsWith([kept, webhook]);
    const result = reconciled(beside, policyKey(RULES, "default", "r"), [stored(kept)]);
    expect(JSON.stringify(result.writes)).toMatch(/^\[{"status":.*"type":"Alone"/);
    // Upstream does not add it to an object that is being deleted, and may be gone while its webhook is still registered.
    const going = rule("r", spec, { finalizers, deletionTimestamp: "2026-01-01T00:00:00Z" });
    const last = reconciled(nodeLabelsWith([going, webhook]), policyKey(RULES, "default", "r"), [
      stored(going),
    ]);
    expect(last.writes).toMatchObject([{ patch: [{ path: "/metadata/finalizers", value: [] }] }]);
  });

  it("reports upstream's webhook, under any name that OLM gave its configuration", () => {
    const assembly = nodeLabelsWith(rules.slice(0, 1));
    expect(keysOf(assembly, arrived(webhook))).toEqual([policyKey(RULES, "default", "a")]);
    const result = reconciled(assembly, policyKey(RULES, "default", "a"), [stored(rules[0] as JsonObject)]);
    expect(JSON.stringify(result.writes)).toMatch(/"type":"Alone","status":"False".*mnode.kb.io-x7f2p/);
    expect(keysOf(assembly, left(webhook))).toHaveLength(1);
  });

  it("of an OwnedLabels reports whether it is valid", () => {
    const object = owned("o", { domain: "kubernetes.io" });
    const result = reconciled(nodeLabelsWith([object]), policyKey(OWNED, "default", "o"), [stored(object)]);
    expect(JSON.stringify(result.writes)).toMatch(/"type":"Valid","status":"False".*USHER-L03/);
  });
});
