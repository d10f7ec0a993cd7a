import { applyPatch } from "rfc6902";
import { describe, expect, it, test } from "vitest";
import { atOnce, callOf } from "../../../../test/builders/evaluation.ts";
import { kubelet, mutated } from "../../../../test/builders/mutated-node.ts";
import { indexWith, node, nodeLabelsWith, owned, patched, rule } from "../../../../test/builders/node.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { Fact } from "../../../core/decision/need.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { responseOf } from "../../../core/evaluate/response.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { RECORD, recordOf } from "../ledger/record.ts";

const set = (name: string, labels: JsonObject, more: JsonObject = {}) =>
  rule(name, { nodeNamePatterns: ["n.*"], labels, ...more });

/** Each row was measured on a real API server: the labels that it accepts from a node that registers itself. */
describe("a node that registers itself", () => {
  it.each([
    ["test.openshift.io/foo", true],
    ["plain", true],
    ["node.kubernetes.io/pool", true],
    ["kubelet.kubernetes.io/x", true],
    ["node-role.kubernetes.io/edge", false],
    ["foo.k8s.io/x", false],
    ["node-restriction.kubernetes.io/x", false],
  ])("%s at creation: %s", (key, atCreation) => {
    const { node: made, allowed } = mutated([set("r", { [key]: "1" })], node("n9"), true);
    expect(allowed).toBe(true);
    expect(at(made, "metadata", "labels", key)).toBe(atCreation ? "1" : undefined);
    expect(at(made, "spec", "taints")).toEqual(
      atCreation ? undefined : [{ key: "usher.dev/starting", effect: "NoSchedule" }],
    );
    // And the controller does the rest in one write.
    const kept = patched(made, indexWith([set("r", { [key]: "1" })]));
    expect(at(kept, "metadata", "labels", key)).toBe("1");
    expect(at(kept, "spec", "taints")).toBeUndefined();
  });

  it("a node that an administrator creates gets everything at creation", () => {
    const { node: made } = mutated([set("r", { "node-role.kubernetes.io/edge": "" })], node("n9"));
    expect(at(made, "metadata", "labels", "node-role.kubernetes.io/edge")).toBe("");
    expect(at(made, "spec", "taints")).toBeUndefined();
  });

  it.each<[string, JsonObject | undefined, JsonObject[], boolean]>([
    ["is configured", { openshift: true }, [], true],
    [
      "shows itself",
      undefined,
      [{ apiVersion: "config.openshift.io/v1", kind: "ClusterVersion", metadata: { name: "version" } }],
      true,
    ],
    [
      "is denied",
      { openshift: false },
      [{ apiVersion: "config.openshift.io/v1", kind: "ClusterVersion", metadata: { name: "version" } }],
      false,
    ],
    ["is none", undefined, [], false],
  ])("where OpenShift %s, its own roles at creation", (_what, settings, known, atCreation) => {
    const assembly = nodeLabelsWith([set("r", { "node-role.kubernetes.io/worker": "" })], settings);
    for (const object of known)
      assembly.apply([
        { resource: "clusterversions.config.openshift.io", namespace: "", name: "version", object },
      ]);
    const call = callOf(assembly, requestFor(node("n9"), { userInfo: kubelet("n9") }));
    const { draft } = atOnce(evaluate(call, outside()));
    expect(draft.get("metadata", "labels", "node-role.kubernetes.io/worker")).toBe(
      atCreation ? "" : undefined,
    );
  });
});

describe("at creation", () => {
  it("the kubelet's value of a key that a rule sets is replaced, other labels stay", () => {
    const { node: made } = mutated(
      [set("r", { "a.b/c": "ruled" })],
      node("n", { "a.b/c": "own", "a.b/d": "own" }),
    );
    expect(at(made, "metadata", "labels")).toEqual({ "a.b/c": "ruled", "a.b/d": "own" });
  });

  it("annotations and taints are set as well, and the record names their rules", () => {
    const more = {
      annotations: { "x.y/z": "1" },
      taints: [{ key: "dedicated", value: "edge", effect: "NoExecute" }],
      startupTaint: true,
    };
    const { node: made } = mutated([set("r", { "a.b/c": "1" }, more)], node("n"));
    expect(at(made, "spec", "taints")).toEqual([
      { key: "dedicated", value: "edge", effect: "NoExecute" },
      { key: "usher.dev/starting", effect: "NoSchedule" },
    ]);
    const { labels, annotations, taints } = recordOf(made);
    expect([...labels, ...annotations, ...taints]).toEqual([
      ["a.b/c", "default/r"],
      ["x.y/z", { rule: "default/r", value: "1" }],
      ["dedicated:NoExecute", { rule: "default/r", value: "edge" }],
    ]);
    expect(at(made, "metadata", "annotations", "usher.dev/provenance")).toBeUndefined();
  });

  it("a record that came with the node is replaced, or removed", () => {
    const forged = node("n", {}, { metadata: { annotations: { [RECORD]: "{}" } } });
    expect(at(mutated([], forged).node, "metadata", "annotations", RECORD)).toBeUndefined();
    expect(
      at(mutated([set("r", { "a.b/c": "1" })], forged).node, "metadata", "annotations", RECORD),
    ).toContain("default/r");
  });

  const TAINTED = { taints: [{ key: "dedicated", value: "edge", effect: "NoExecute" }] };
  const STARTING = { key: "usher.dev/starting", effect: "NoSchedule" };
  const LEDGER = { get: { resource: "configmaps", namespace: "usher-system", name: "usher-node-labels" } };
  const ledger = (taints: string): Fact => ({ found: { data: { taints } }, complete: true });

  it.each<[string, Fact, boolean]>([
    ["the ledger has it", ledger('dedicated=edge:NoExecute "n.*"'), true],
    ["the ledger has it for other nodes", ledger('dedicated=edge:NoExecute "edge-.*"'), false],
    ["the ledger has another value", ledger('dedicated=core:NoExecute "n.*"'), false],
    ["the ledger does not exist", { absent: "NotFound" }, false],
    ["the ledger can't be read", { failed: "503" }, false],
  ])("a taint is set at creation, or the startup taint stands in for it: %s", async (_what, fact, isSet) => {
    const given = set("r", {}, TAINTED);
    const world = outside({ fact: () => fact });
    const request = requestFor(node("n9"));
    const evaluation = await evaluate(callOf(nodeLabelsWith([given]), request), world);
    expect(world.fetches).toMatchObject([[LEDGER]]);
    const made = node("n9");
    applyPatch(made, (responseOf(evaluation).patch ?? []) as unknown as Parameters<typeof applyPatch>[1]);
    expect(at(made, "spec", "taints")).toEqual(isSet ? TAINTED.taints : [STARTING]);
    expect(recordOf(made).taints.size).toBe(isSet ? 1 : 0);
    expect(
      evaluation.findings.filter(({ rule: name }) => name === "deferred").map(({ message }) => message),
    ).toEqual(
      isSet
        ? []
        : [
            "taint dedicated=edge:NoExecute can't be set before it is in the ConfigMap usher-node-labels; the controller sets it right after",
          ],
    );
    const kept = patched(made, indexWith([given]));
    expect(at(kept, "spec", "taints")).toEqual(TAINTED.taints);
  });

  it("the ledger is read for taints that are to be set, and for nothing else", async () => {
    const asked = async (rules: readonly JsonObject[]) => {
      const world = outside();
      await evaluate(callOf(nodeLabelsWith(rules), requestFor(node("n9"))), world);
      return world.fetches;
    };
    expect(await asked([set("r", { "a.b/c": "1" })])).toEqual([]);
    expect(await asked([rule("other", { nodeNamePatterns: ["m"], ...TAINTED })])).toEqual([]);
    expect(await asked([set("r", {}, TAINTED)])).toHaveLength(1);
  });

  it("a taint of another value is changed in its place", () => {
    const given = node(
      "n",
      {},
      {
        spec: {
          taints: [
            { key: "a", effect: "NoSchedule" },
            { key: "d", value: "x", effect: "NoSchedule" },
          ],
        },
      },
    );
    const { node: made } = mutated(
      [set("r", {}, { taints: [{ key: "d", value: "y", effect: "NoSchedule" }] })],
      given,
    );
    expect(at(made, "spec", "taints")).toEqual([
      { key: "a", effect: "NoSchedule" },
      { key: "d", value: "y", effect: "NoSchedule" },
    ]);
  });

  it("the startup taint has the key of the configuration", () => {
    const { node: made } = mutated([set("r", {}, { startupTaint: true })], node("n"), false, {
      startupTaint: "a.b/starting",
    });
    expect(at(made, "spec", "taints", 0, "key")).toBe("a.b/starting");
  });

  it("a trace has an entry for every rule", () => {
    const assembly = nodeLabelsWith([
      set("in", {}),
      rule("out", { nodeNamePatterns: ["x"] }),
      set("by-label", {}, { nodeSelector: { matchLabels: { a: "b" } } }),
    ]);
    const { trace } = atOnce(evaluate(callOf(assembly, requestFor(node("n")), { trace: true }), outside()));
    expect(trace.map(({ policy, applies, why }) => `${policy.name} ${applies}: ${why}`).sort()).toEqual([
      "by-label not: nodeSelector: needs a=b, there is no label a",
      "in applies: the name n matches",
      "out not: no pattern matches the whole name n",
    ]);
  });

  it("a deferred label is a finding", () => {
    const { findings } = mutated([set("r", { "foo.k8s.io/x": "1" })], node("n9"), true);
    expect(findings).toContain(
      "deferred skipped: label foo.k8s.io/x=1 can't be set while a node registers itself; the controller sets it right after",
    );
  });
});

test("owned labels of a new node are left to the controller", () => {
  const { allowed, node: made } = mutated(
    [owned("o", { domain: "a.b" })],
    node("n9", { "a.b/x": "1" }),
    true,
  );
  expect(allowed).toBe(true);
  expect(at(made, "metadata", "labels", "a.b/x")).toBe("1");
});
