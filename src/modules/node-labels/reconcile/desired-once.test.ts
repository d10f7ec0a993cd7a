import { afterEach, beforeEach, describe, expect, it, type MockInstance, vi } from "vitest";
import { arrived, node, nodeLabelsWith } from "../../../../test/builders/node.ts";
import {
  initialKeysOf,
  KEY,
  keysOf,
  reconciled,
  right,
  set,
  stored,
} from "../../../../test/builders/node-reconcile.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import { RuleIndex } from "../rules/rule-index.ts";
import { nodeKey } from "./keys.ts";

/** The rules that match a node are looked up once each time its desired state is computed. */
let computed: MockInstance<RuleIndex["matching"]>;

beforeEach(() => {
  computed = vi.spyOn(RuleIndex.prototype, "matching");
});
afterEach(() => computed.mockRestore());

const DEDICATED = { key: "dedicated", value: "edge", effect: "NoSchedule" };

/** A node that differs from its desired state in the view, and in this way in the API server. */
function writesOf(assembly: Assembly, ...objects: JsonObject[]) {
  keysOf(assembly, arrived(node("w-0")));
  // The keys of a new node include the rules that count it, which is a separate lookup.
  computed.mockClear();
  keysOf(assembly, arrived(node("w-0", { theirs: "1" })));
  return reconciled(assembly, nodeKey("w-0"), objects);
}

describe("for one write the desired state of a node is computed", () => {
  it("once for the view's copy and once for the stored node", () => {
    const assembly = nodeLabelsWith([set("r", ["w-.*"], { [KEY]: "1" })]);
    expect(writesOf(assembly, stored(node("w-0", { theirs: "1" })))).toMatchObject({
      writes: [{}],
      asked: 1,
    });
    expect(computed).toHaveBeenCalledTimes(2);
  });

  it("no more often if only the stored node needs the ledger", () => {
    const assembly = nodeLabelsWith([set("r", ["w-.*"], { [KEY]: "1" })]);
    const record = { taints: { "dedicated:NoSchedule": { rule: "default/gone", value: "edge" } } };
    const annotations = { "usher.dev/node-labels": JSON.stringify(record) };
    const tainted = node("w-0", {}, { metadata: { annotations }, spec: { taints: [DEDICATED] } });
    expect(writesOf(assembly, stored(tainted))).toMatchObject({ writes: [{}], asked: 2 });
    expect(computed).toHaveBeenCalledTimes(2);
  });

  it("no more often for a new leader", () => {
    const assembly = nodeLabelsWith([set("r", ["w-.*"], { [KEY]: "1" }), node("w-0")]);
    initialKeysOf(assembly);
    reconciled(assembly, nodeKey("w-0"), [stored(node("w-0"))]);
    expect(computed).toHaveBeenCalledTimes(2);
  });

  it("again if a rule has changed in the meantime", () => {
    // With this many rules one change updates the index in place.
    const others = Array.from({ length: 10 }, (_, i) => set(`o${i}`, [`x-${i}`], { [KEY]: "1" }));
    const assembly = nodeLabelsWith([...others, set("r", ["w-.*"], { [KEY]: "1" })]);
    expect(keysOf(assembly, arrived(right("w-0", "2")))).toContainEqual(nodeKey("w-0"));
    assembly.apply([arrived(set("r", ["w-.*"], { [KEY]: "2" }))]);
    expect(reconciled(assembly, nodeKey("w-0"), [])).toEqual({ writes: [], asked: 0 });
  });
});
