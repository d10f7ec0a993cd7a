import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { EXAMPLES, folder, usher } from "./usher.ts";

const policy = (name: string, spec: string) =>
  `apiVersion: kupid.gardener.cloud/v1alpha1\nkind: ClusterPodSchedulingPolicy\nmetadata: {name: ${name}}\nspec: {podSelector: {}, namespaceSelector: {}, ${spec}}\n`;

async function report(text: string, ...flags: string[]) {
  const source = folder({ "policies.yaml": text });
  const { out, err, code } = await usher(["compile", "--source", source, "--report", "-o", "json", ...flags]);
  const { policies } = JSON.parse(out) as {
    policies: { name: string; result: string; leftOut: { what: string; why: string }[] }[];
  };
  return {
    err,
    code,
    policies,
    lines: policies.map((one) => [one.name, one.result, ...one.leftOut.map(({ what }) => what)]),
  };
}

describe("usher compile", () => {
  test("prints the objects on stdout and the report on stderr", async () => {
    const { out, err, code } = await usher(["compile", "--source", EXAMPLES]);
    expect(code).toBe(1);
    const kinds = parseAllDocuments(out).map((one) => one.get("kind"));
    expect(kinds.slice(0, 2)).toEqual(["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]);
    expect(kinds).toHaveLength(8);
    expect(err).toContain("4 policies: 0 compiled whole, 4 in part, 0 not");
  });

  test("prints only the report with -o table, and only the objects with --quiet", async () => {
    const { out } = await usher(["compile", "--source", EXAMPLES, "-o", "table"]);
    expect(out).toMatch(
      /^MODULE +POLICY +COMPILED +LEFT OUT\nplacement +ClusterPodSchedulingPolicy batch-nights +in part/,
    );
    const silent = await usher(["compile", "--source", EXAMPLES, "--quiet", "-o", "json"]);
    expect(silent.err).toBe("");
    expect(JSON.parse(silent.out).items).toHaveLength(8);
  });

  test("exits with 0 where every policy is compiled whole", async () => {
    const { code, lines } = await report(policy("a", "targets: Pods, nodeSelector: {pool: a}"));
    expect([code, lines]).toEqual([0, [["a", "whole"]]]);
  });

  test.each<[string, string, string[]]>([
    ["templates", "nodeSelector: {pool: a}", ["in part", "templates"]],
    [
      "conflicts that refuse",
      "targets: Pods, onConflict: Refuse, nodeSelector: {pool: a}",
      ["in part", "onConflict: Refuse"],
    ],
    ["updates", "targets: Pods, onUpdate: Inject, nodeSelector: {pool: a}", ["in part", "onUpdate: Inject"]],
    ["references", "targets: Pods, priorityClassName: high", ["in part", "the check of priorityClassName"]],
    [
      "a default that counts as unset",
      "targets: Pods, schedulerName: packing",
      ["in part", "a chosen default-scheduler"],
    ],
    ["a policy for templates", "targets: Templates, nodeSelector: {pool: a}", ["not", "templates"]],
    ["a policy without criteria", "targets: Pods", ["not", "criteria"]],
  ])("names what is left out of %s", async (_case, spec, expected) => {
    const { code, lines } = await report(policy("a", spec));
    expect([code, lines]).toEqual([1, [["a", ...expected]]]);
  });

  test("names the order of policies only where it may count", async () => {
    const { lines } = await report(
      [
        policy("a", "targets: Pods, nodeSelector: {pool: a}"),
        policy("b", "targets: Pods, nodeSelector: {pool: b}"),
        policy("c", "targets: Pods, schedulingGates: [{name: example.com/c}]"),
      ].join("---\n"),
    );
    expect(lines).toEqual([
      ["a", "in part", "the order of policies"],
      ["b", "in part", "the order of policies"],
      ["c", "whole"],
    ]);
  });

  test("says that there is nothing to compile in a source without policies", async () => {
    const source = folder({ "namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n" });
    const { out, err, code } = await usher(["compile", "--source", source]);
    expect([code, out]).toEqual([0, ""]);
    expect(err).toContain("no policies: there is nothing to compile");
  });

  test("exits with 2 for a source that does not exist", async () => {
    const { code, err } = await usher(["compile", "-f", "missing.yaml"]);
    expect([code, err]).toEqual([2, expect.stringContaining("missing.yaml: no such file or directory")]);
  });
});
