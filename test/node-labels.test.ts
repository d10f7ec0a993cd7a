import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { JsonObject } from "../src/core/json.ts";
import { checkObject } from "../src/core/policy/check.ts";
import { Store } from "../src/core/view/store.ts";
import { modules } from "../src/modules/all.ts";
import { folder, ROOT, usher } from "./cli/usher.ts";

const readme = readFileSync(join(ROOT, "src/modules/node-labels/README.md"), "utf8");

function blocks(info: string): string[] {
  return [...readme.matchAll(new RegExp(`^\`\`\`${info}\n([\\s\\S]*?)^\`\`\``, "gm"))].map(
    ([, text = ""]) => text,
  );
}

describe("the README of node-labels", () => {
  it.each(blocks("text plan"))("shows the real output: %s", (block) => {
    const [first = "", ...prints] = block.split("\n");
    const ran = spawnSync("sh", ["-c", first.replace(/^\$ /, "")], { cwd: ROOT, encoding: "utf8" });
    expect(ran.stdout.trimEnd()).toBe(prints.join("\n").trimEnd());
    expect(ran.status).toBe(1);
  });

  it("has a configuration that usher accepts, with its toleration", () => {
    const file = join(folder({ "usher.yaml": blocks("yaml configuration").join("") }), "usher.yaml");
    const printed = execFileSync(process.execPath, ["src/cli/main.ts", "manifests", "--config", file], {
      cwd: ROOT,
      encoding: "utf8",
    });
    expect(printed).toMatch(
      /tolerations:\n +- key: startup-taint.cluster-autoscaler.kubernetes.io\/usher\n +operator: Exists\n +effect: NoSchedule/,
    );
  });

  it("has only valid manifests", () => {
    const kinds = modules.flatMap((module) => module.kinds);
    const found = ["yaml policy", "yaml"]
      .flatMap(blocks)
      .flatMap((text) => parseAllDocuments(text).map((one) => one.toJS() as JsonObject));
    const ours = found.filter(({ apiVersion }) => apiVersion === "node-labels.openshift.io/v1beta1");
    expect(ours.map(({ kind }) => kind)).toEqual(["Labels", "OwnedLabels"]);
    for (const object of ours) {
      const kind = kinds.find((one) => one.kind === object["kind"]);
      const problems = kind === undefined ? ["no such kind"] : checkObject(kind, object, new Store());
      expect(problems.filter((one) => typeof one === "string" || one.severity === "error")).toEqual([]);
    }
  });
});

/** As node-label-operator ships them. */
const SAMPLES = `
apiVersion: node-labels.openshift.io/v1beta1
kind: Labels
metadata: { name: labels-sample, namespace: default }
spec:
  nodeNamePatterns: ["worker-0.*"]
  labels: { test.openshift.io/foo1: bar1, example.openshift.io/foo2: bar2, test.openshift.io/foo3: bar3 }
---
apiVersion: node-labels.openshift.io/v1beta1
kind: OwnedLabels
metadata: { name: ownedlabels-sample, namespace: default }
spec: { domain: test.openshift.io }
---
apiVersion: v1
kind: Node
metadata: { name: worker-0-dummy-1, labels: { test.openshift.io/old: "1" } }
`;

describe("usher node-labels plan", () => {
  it("has machine-readable output, and its exit code tells whether changes are pending", async () => {
    const source = folder({ "all.yaml": SAMPLES });
    const { code, out } = await usher(["node-labels", "plan", "--source", source, "-o", "json"]);
    expect(code).toBe(1);
    const { changes } = JSON.parse(out) as { changes: JsonObject[] };
    expect(changes).toContainEqual({
      kind: "Node",
      name: "worker-0-dummy-1",
      what: "label",
      change: "add",
      key: "test.openshift.io/foo1",
      to: "bar1",
      by: "default/labels-sample",
      message: "label test.openshift.io/foo1=bar1",
    });
    expect(changes).toContainEqual({
      kind: "Node",
      name: "worker-0-dummy-1",
      what: "label",
      change: "remove",
      key: "test.openshift.io/old",
      from: "1",
      by: "default/ownedlabels-sample",
      message: "label test.openshift.io/old=1",
    });
    expect(changes).toHaveLength(4);
  });

  it("reports that nothing changes", async () => {
    const source = folder({
      "all.yaml": SAMPLES.replace("worker-0.*", "nobody").replace("test.openshift.io/old", "mine"),
    });
    expect(await usher(["node-labels", "plan", "--source", source])).toMatchObject({
      code: 0,
      out: "no changes: nodes match the policies\n",
    });
  });

  it.each<[string, string[], RegExp]>([
    ["a missing source", ["--source", "/none"], /no such file or directory/],
  ])("a call with %s is invalid", async (_what, args, message) => {
    const { code, err } = await usher(["node-labels", "plan", ...args]);
    expect(code).toBe(2);
    expect(err).toMatch(message);
  });

  it("an invalid rule is reported, and makes the preview incomplete", async () => {
    const source = folder({ "all.yaml": SAMPLES.replace("worker-0.*", "worker-[") });
    const { code, err } = await usher(["node-labels", "plan", "--source", source]);
    expect(code).toBe(2);
    expect(err).toMatch(/nodeNamePatterns\[0\]: "worker-\[" is not a valid pattern/);
  });
});

describe("settings of modules", () => {
  it.each<[string, string, RegExp]>([
    [
      "an unknown module",
      "nothing: {}",
      /spec.modules.nothing: no such module; the modules are: .*node-labels/,
    ],
    ["an unknown setting", "node-labels: { startTaint: x }", /spec.modules.node-labels: .*startTaint/],
    [
      "a wrong key",
      "node-labels: { startupTaint: a b }",
      /spec.modules.node-labels.startupTaint: must be a taint key/,
    ],
    [
      "a wrong type",
      "node-labels: { gracePeriodSeconds: soon }",
      /spec.modules.node-labels.gracePeriodSeconds/,
    ],
  ])("%s ends the call", async (_what, text, message) => {
    const spec = `apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec:\n  modules:\n    ${text}\n`;
    const config = join(folder({ "usher.yaml": spec }), "usher.yaml");
    const { code, err } = await usher(["manifests", "--config", config]);
    expect(code).toBe(2);
    expect(err).toMatch(message);
  });
});
