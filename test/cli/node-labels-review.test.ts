import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { folder, ROOT, reviewedOne, usher } from "./usher.ts";

const RULES = join(ROOT, "examples/node-labels");

const rule = (name: string, spec: string) => `
apiVersion: node-labels.openshift.io/v1beta1
kind: Labels
metadata: {name: ${name}, namespace: cluster-config}
spec: {nodeNamePatterns: ["n.*"], ${spec}}
---`;

const node = (more = "", name = "n1") => `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}${more}}\n`;

const CONFLICT = [
  rule(
    "core",
    "labels: {pool: core, site: south}, taints: [{key: dedicated, value: core, effect: NoExecute}]",
  ),
  rule(
    "edge",
    "priority: 5, labels: {pool: edge}, taints: [{key: dedicated, value: edge, effect: NoExecute}]",
  ),
].join("");

describe("review of a Node", () => {
  it("names every label, annotation and taint with its rule", async () => {
    const { out } = await usher(["review", join(RULES, "nodes.yaml"), "--source", RULES, "-q"]);
    expect(out).toContain("~ label telco.example.com/pool=edge (was core)");
    expect(out).toContain("+ label node-role.kubernetes.io/edge  ");
    expect(out).toMatch(/\+ label telco.example.com\/site=north +cluster-config\/site-north\n/);
    expect(out).toMatch(
      /\+ annotation telco.example.com\/contact=noc-north@example.com +cluster-config\/site-north\n/,
    );
    expect(out).toMatch(/\+ taint telco.example.com\/dedicated=edge:NoSchedule +cluster-config\/edge-pool\n/);
    expect(out).not.toContain("provenance");
  });

  it("has the same changes in JSON, one for each patched value", async () => {
    const source = folder({
      "rules.yaml": rule("r", "startupTaint: true, labels: {a: '1', b: ''}, annotations: {c: d}"),
    });
    const { changes, patch } = await reviewedOne(["-", "--source", source], node(", labels: {a: '0'}"));
    const by = { module: "node-labels", policy: "cluster-config/r" };
    expect(changes).toEqual([
      { ...by, change: "change", path: "metadata.labels.a", message: "label a=1 (was 0)" },
      { ...by, change: "add", path: "metadata.labels.b", message: "label b" },
      { ...by, change: "add", path: "metadata.annotations.c", message: "annotation c=d" },
      {
        ...by,
        change: "add",
        path: "spec.taints[0]",
        message: "startup taint usher.dev/starting:NoSchedule",
      },
    ]);
    expect(JSON.stringify(patch)).not.toContain("usher.dev/provenance");
  });

  it("a record that came with the node is removed, and the review says so", async () => {
    const source = folder({ "rules.yaml": rule("r", "labels: {a: '1'}") });
    const forged = node(", annotations: {usher.dev/node-labels: '{}'}", "other");
    const { changes } = await reviewedOne(["-", "--source", source], forged);
    expect(changes).toEqual([
      {
        module: "node-labels",
        policy: "",
        change: "remove",
        path: "metadata.annotations[usher.dev/node-labels]",
        message: "annotation usher.dev/node-labels: only usher writes it",
      },
    ]);
  });

  it("values that the node already has are not changes", async () => {
    const source = folder({ "rules.yaml": rule("r", "labels: {a: '1'}") });
    const args = ["review", "-", "--source", source, "--trace"];
    const { out } = await usher(args, { stdin: node(", labels: {a: '1'}") });
    expect(out).toContain("    = label a=1\n");
    expect(out).toContain("1 unchanged");
  });

  it("a rule that loses a key does not apply whole, and the trace says to which rule it loses", async () => {
    const source = folder({ "rules.yaml": CONFLICT });
    const { out } = await usher(["review", "-", "--source", source, "--trace"], { stdin: node() });
    expect(out.split("\n").slice(1, 8)).toEqual([
      "  cluster-config/edge  applies  the name n1 matches",
      "    + label pool=edge",
      "    + taint dedicated=edge:NoExecute",
      "  cluster-config/core  partly   the name n1 matches",
      "    + label site=south",
      "    ! label pool=core: rule cluster-config/edge sets edge (USHER-L01)",
      "    ! taint dedicated=core:NoExecute: rule cluster-config/edge sets edge (USHER-L01)",
    ]);
  });
});

describe("node-labels plan", () => {
  it("shows conflicts of rules, in the table and in JSON", async () => {
    const source = folder({ "all.yaml": `${CONFLICT}\n${node()}` });
    const table = await usher(["node-labels", "plan", "--source", source]);
    expect(table.out).toMatch(
      /! label pool=core: rule cluster-config\/edge sets edge \(USHER-L01\) +cluster-config\/core\n/,
    );
    expect(table.out).toContain("1 node: 3 to add, 0 to change, 0 to remove; 2 conflicts\n");
    const json = JSON.parse((await usher(["node-labels", "plan", "--source", source, "-o", "json"])).out);
    expect(json.conflicts[1]).toEqual({
      kind: "Node",
      name: "n1",
      what: "taint",
      key: "dedicated",
      effect: "NoExecute",
      value: "core",
      winning: "edge",
      rule: "cluster-config/core",
      winner: "cluster-config/edge",
      code: "USHER-L01",
      message: "taint dedicated=core:NoExecute: rule cluster-config/edge sets edge",
    });
    expect(json.summary).toEqual({ nodes: 1, add: 3, change: 0, remove: 0, conflicts: 2 });
  });

  it("conflicts alone are not changes: the exit code is that of matching nodes", async () => {
    const done = node(", labels: {pool: edge, site: south}");
    const tainted = `${done}spec: {taints: [{key: dedicated, value: edge, effect: NoExecute}]}\n`;
    const source = folder({ "all.yaml": `${CONFLICT}\n${tainted}` });
    expect(await usher(["node-labels", "plan", "--source", source])).toMatchObject({
      code: 0,
      out: expect.stringContaining("no changes: nodes match the policies; 2 conflicts\n"),
    });
  });

  it.each([
    ["{key: k, value: v, effect: NoSchedule}", "taint k=v:NoSchedule"],
    ["{key: k, effect: NoSchedule}", "taint k:NoSchedule"],
  ])("a taint is printed as kubectl does, as in a review: %s", async (taint, spelled) => {
    const source = folder({ "all.yaml": `${rule("r", `taints: [${taint}]`)}\n${node()}` });
    expect((await usher(["node-labels", "plan", "--source", source])).out).toContain(`+ ${spelled}  `);
    const { changes } = await reviewedOne(["-", "--source", source], node());
    expect(changes.map(({ message }) => message)).toEqual([spelled]);
  });
});
