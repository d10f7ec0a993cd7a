import { describe, expect, it } from "vitest";
import { arrived, node, nodeLabelsWith, owned } from "../../../../test/builders/node.ts";
import {
  KEY,
  keysOf,
  LEDGER,
  NOW,
  RULES,
  reconciled,
  right,
  set,
  stored,
} from "../../../../test/builders/node-reconcile.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { nodeKey, policyKey } from "./keys.ts";

describe("reconciling a node", () => {
  const rules = [set("r", ["w-.*"], { [KEY]: "1" })];

  it("patches the stored node, guarded by its resourceVersion", () => {
    const assembly = nodeLabelsWith([...rules, node("w-0")]);
    const result = reconciled(assembly, nodeKey("w-0"), [stored(node("w-0", { mine: "x" }), "42")]);
    expect(result).toMatchObject({
      writes: [{ of: { resource: "nodes", name: "w-0" }, resourceVersion: "42" }],
      asked: 1,
    });
    expect(at(result.writes as never, 0, "patch", 0)).toEqual({
      op: "add",
      path: "/metadata/labels/test.openshift.io~1foo1",
      value: "1",
    });
  });

  it.each<[string, JsonObject[], JsonObject[], number]>([
    ["an up-to-date node takes no read", [right("w-0")], [], 0],
    ["a deleted node takes no write", [node("w-0")], [], 1],
    ["a node that is up to date by now needs no write", [node("w-0")], [stored(right("w-0"))], 1],
    [
      "a node that is being deleted takes no write",
      [node("w-0")],
      [stored(node("w-0", {}, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }))],
      1,
    ],
  ])("%s", (_what, known, there, asked) => {
    const assembly = nodeLabelsWith([...rules, ...known]);
    expect(reconciled(assembly, nodeKey("w-0"), there)).toMatchObject({ writes: [], asked });
  });

  it("delays removals of a new OwnedLabels, and nothing else", () => {
    const created = new Date(NOW - 20_000).toISOString();
    const assembly = nodeLabelsWith([
      set("r", ["w-.*"], { "a.b/c": "1" }),
      owned("o", { domain: "test.openshift.io" }, { creationTimestamp: created }),
      right("w-0"),
    ]);
    const result = reconciled(assembly, nodeKey("w-0"), [stored(right("w-0"))]);
    expect(result.requeueAfter).toBe(40);
    expect(JSON.stringify(result.writes)).toContain("a.b~1c");
    expect(JSON.stringify(result.writes)).not.toContain("remove");
    const later = reconciled(assembly, nodeKey("w-0"), [stored(right("w-0"))], { now: NOW + 40_000 });
    expect(JSON.stringify(later.writes)).toContain(
      '"remove","path":"/metadata/labels/test.openshift.io~1foo1"',
    );
  });

  const DEDICATED = { key: "dedicated", value: "edge", effect: "NoSchedule" };
  const ledger = (text: string): JsonObject => ({
    kind: "ConfigMap",
    metadata: { name: "usher-node-labels", namespace: "usher-system", resourceVersion: "9" },
    data: { taints: text },
  });
  const tainted = (name: string) => {
    const record = { taints: { "dedicated:NoSchedule": { rule: "default/gone", value: "edge" } } };
    const annotations = { "usher.dev/node-labels": JSON.stringify(record) };
    return node(name, {}, { metadata: { annotations }, spec: { taints: [DEDICATED] } });
  };

  it.each<[string, string, boolean]>([
    ["the taint for such a name", 'x=y:NoExecute ".*"\ndedicated=edge:NoSchedule "w-.*"', true],
    ["by a later line", 'dedicated=edge:NoSchedule "v"\ndedicated=edge:NoSchedule "w-0"', true],
    ["another taint", 'x=y:NoExecute ".*"', false],
    ["another value", 'dedicated=core:NoSchedule ".*"', false],
    // A rule that sets it on edge-1 does not cover an administrator's on w-0.
    ["the taint for other names", 'dedicated=edge:NoSchedule "edge-.*"', false],
    ["the taint for a part of the name", 'dedicated=edge:NoSchedule "w"', false],
    ["the taint, as it was once written, for no name", "dedicated=edge:NoSchedule", false],
    ["a name that can't be read", "dedicated=edge:NoSchedule [", false],
    ["a pattern that can't be read", 'dedicated=edge:NoSchedule "["', false],
  ])("removes a taint only if the ledger includes it: %s", (_what, text, off) => {
    const assembly = nodeLabelsWith([tainted("w-0")]);
    const result = reconciled(assembly, nodeKey("w-0"), [stored(tainted("w-0")), ledger(text)]);
    expect(JSON.stringify(result.writes).includes('"op":"remove","path":"/spec/taints"')).toBe(off);
  });

  const rule = (name: string, patterns: string[]) => set(name, patterns, {}, { taints: [DEDICATED] });

  it("writes taints of rules to the ledger", () => {
    const assembly = nodeLabelsWith([rule("r", ["w-.*", "v"])]);
    const lines = 'dedicated=edge:NoSchedule "w-.*"\ndedicated=edge:NoSchedule "v"';
    expect(reconciled(assembly, LEDGER, []).writes).toMatchObject([
      { apply: { kind: "ConfigMap", data: { taints: lines } }, resourceVersion: undefined },
    ]);
    // A line without a pattern is dropped.
    expect(reconciled(assembly, LEDGER, [ledger('old=1:NoExecute\nx=y:NoExecute "z"')]).writes).toMatchObject(
      [{ apply: { data: { taints: `x=y:NoExecute "z"\n${lines}` } }, resourceVersion: "9" }],
    );
    expect(reconciled(assembly, LEDGER, [ledger(lines)]).writes).toEqual([]);
  });

  it("limits the ledger to a ConfigMap's size, with the newest lines", () => {
    const names = Array.from({ length: 256 }, (_, i) => `${i}-${"x".repeat(1_000)}`);
    const rules = [0, 1, 2, 3].map((i) =>
      rule(
        `r${i}`,
        names.map((name) => `${i}-${name}`),
      ),
    );
    const [write] = reconciled(nodeLabelsWith(rules), LEDGER, [ledger('x=y:NoExecute "z"')]).writes;
    const text = String(at(write as never, "apply", "data", "taints"));
    expect(text.length).toBeLessThan(600_000);
    expect(text).toContain(`"3-255-${"x".repeat(1_000)}"`);
    expect(text).not.toContain('"z"');
  });

  it("writes a taint to the ledger before it is set on a node", () => {
    const bare = node("w-0");
    const assembly = nodeLabelsWith([rule("r", ["w-.*"]), bare]);
    const written = 'dedicated=edge:NoSchedule "w-.*"';
    expect(reconciled(assembly, nodeKey("w-0"), [stored(bare), ledger("")])).toMatchObject({
      writes: [
        { apply: { data: { taints: written } }, resourceVersion: "9" },
        { of: { resource: "nodes", name: "w-0" }, resourceVersion: "7" },
      ],
    });
    const again = reconciled(assembly, nodeKey("w-0"), [stored(bare), ledger(written)]);
    expect(again.writes).toMatchObject([{ of: { resource: "nodes" } }]);
    // It is known by now, so it is not read again for each of ten thousand nodes.
    expect(reconciled(assembly, nodeKey("w-0"), [stored(bare)])).toMatchObject({ asked: 1, writes: [{}] });
  });

  const starting = node(
    "w-0",
    {},
    { spec: { taints: [{ key: "usher.dev/starting", effect: "NoSchedule" }] } },
  );

  it("writes a ledger that was deleted again, for a node that starts without a rule's taint", () => {
    const assembly = nodeLabelsWith([rule("r", ["w-.*"]), starting]);
    const written = ledger('dedicated=edge:NoSchedule "w-.*"');
    expect(reconciled(assembly, LEDGER, [written]).writes).toEqual([]);
    expect(reconciled(assembly, nodeKey("w-0"), [stored(starting)])).toMatchObject({
      writes: [{ apply: { kind: "ConfigMap" } }, { of: { resource: "nodes" } }],
    });
  });

  it("leaves taints alone while the ledger can't be read", () => {
    const assembly = nodeLabelsWith([...rules, rule("t", ["w-.*"]), starting]);
    const result = reconciled(assembly, nodeKey("w-0"), [stored(starting)], { failing: ["configmaps"] });
    expect(result.requeueAfter).toBe(30);
    const [write] = result.writes;
    expect(JSON.stringify(write)).toContain("test.openshift.io~1foo1");
    expect(JSON.stringify(write)).not.toContain("taints");
  });

  it("writes the ledger once, and reports the status of a rule also while the ledger can't be read", () => {
    const assembly = nodeLabelsWith([rule("r", ["w-.*"])]);
    expect(keysOf(nodeLabelsWith([]), arrived(rule("r", ["w-.*"])))).toContainEqual(LEDGER);
    const lines = 'dedicated=edge:NoSchedule "w-.*"';
    expect(reconciled(assembly, LEDGER, [ledger("")]).writes).toMatchObject([
      { apply: { data: { taints: lines } } },
    ]);
    expect(reconciled(assembly, LEDGER, [ledger(lines)]).writes).toEqual([]);
    const key = policyKey(RULES, "default", "r");
    expect(
      reconciled(assembly, key, [stored(rule("r", ["w-.*"]))], { failing: ["configmaps"] }).writes,
    ).toMatchObject([{ status: { observedGeneration: 1 } }]);
  });

  it("a rule without patterns is recorded for any name", () => {
    const selecting = set("r", [], {}, { taints: [DEDICATED], nodeSelector: { matchLabels: { a: "b" } } });
    expect(reconciled(nodeLabelsWith([selecting]), LEDGER, []).writes).toMatchObject([
      { apply: { data: { taints: 'dedicated=edge:NoSchedule ".*"' } } },
    ]);
  });
});
