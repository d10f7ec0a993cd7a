import { describe, expect, it, test } from "vitest";
import { parse } from "yaml";
import { EXAMPLES, folder, usher } from "./usher.ts";

const policy = (parts: { kind?: string; metadata?: string; more?: string; spec?: string } = {}) => {
  const { kind = "PodSchedulingPolicy", metadata = "name: a, namespace: shop", more = "", spec = "" } = parts;
  return `apiVersion: kupid.gardener.cloud/v1alpha1
kind: ${kind}
metadata: {${metadata}}
spec: {podSelector: {}, nodeSelector: {pool: web}${spec}}
${more}`;
};

const POD =
  "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: m, image: a}]}\n";

const MISTAKES: readonly (readonly [string, string, RegExp])[] = [
  [
    "an unknown kind in one of usher's groups",
    policy({ kind: "PodSchedulingPolcy" }),
    /a.yaml:2:7: kind: kupid.gardener.cloud has no kind PodSchedulingPolcy.*\n[\s\S]*did you mean "PodSchedulingPolicy"/,
  ],
  [
    "a namespaced policy without namespace",
    policy({ metadata: "name: a" }),
    /a.yaml:3:1: metadata.namespace: is missing: the policy is in namespace default/,
  ],
];

test.each([
  ["an unknown field", policy({ more: "sepc: {}" }), /a.yaml:5:1: sepc: unknown field/],
  [
    "an unknown field of the spec",
    policy({ spec: ", nodeSelecter: {}" }),
    /spec.nodeSelecter: unknown field/,
  ],
  [
    "a version that is not served",
    policy().replace("v1alpha1", "v1"),
    /a.yaml:1:13: apiVersion: PodSchedulingPolicy has no version "kupid.gardener.cloud\/v1"/,
  ],
])("%s of a policy in a source is exit code 2", async (_what, text, message) => {
  const { code, err } = await usher(["review", "-", "--source", folder({ "a.yaml": text })], { stdin: POD });
  expect(err).toMatch(message);
  expect(code).toBe(2);
});

test("a policy in a version that is not served changes nothing", async () => {
  const source = folder({ "a.yaml": policy().replace("v1alpha1", "v1") });
  const { out } = await usher(["review", "-", "--source", source], { stdin: POD });
  expect(out).toMatch(/Pod shop\/web +allow/);
});

describe.each(MISTAKES)("%s in a source", (_what, text, message) => {
  const files = { "a.yaml": text, "b.yaml": policy({ metadata: "name: good, namespace: lab" }) };
  const args = () => ["review", "-", "--source", folder(files), "-n", "default"];

  it("is a warning, and with --strict an error", async () => {
    const plain = await usher(args(), { stdin: POD });
    expect(plain.err).toMatch(message);
    expect(plain.code).toBe(0);
    const strict = await usher([...args(), "--strict", "-q"], { stdin: POD });
    expect(strict.err).toMatch(message);
    expect(strict.err).toContain("--strict: 1 warning is an error\n");
    expect(strict.code).toBe(2);
  });

  it("is in the JSON, of reviews and of module commands", async () => {
    for (const command of [args(), ["node-labels", "plan", ...args().slice(2, 4)]]) {
      const { out } = await usher([...command, "-o", "json", "--strict"], { stdin: POD });
      expect(JSON.parse(out).problems).toEqual([
        expect.objectContaining({
          from: "source",
          severity: "error",
          file: expect.stringMatching(/a\.yaml$/),
        }),
      ]);
    }
  });
});

test("a source without policies is a warning, and with --strict an error", async () => {
  const source = folder({ "pod.yaml": POD });
  const plain = await usher(["review", "-", "--source", source], { stdin: POD });
  expect(plain.err).toBe(`${source}: no policies found: nothing is changed or denied by a policy\n`);
  expect(plain.code).toBe(0);
  const strict = await usher(["review", "-", "--source", source, "--strict", "-q"], { stdin: POD });
  expect(strict.err).toContain("no policies found");
  expect(strict.code).toBe(2);
});

test.each([
  [
    "an unknown kind",
    policy({ kind: "PodSchedulingPolcy" }),
    /stdin:2:7: kind: .*has no kind PodSchedulingPolcy/,
  ],
  [
    "an unknown field",
    policy({ spec: ", nodeSelecter: {}" }),
    /stdin:4:\d+: spec.nodeSelecter: unknown field/,
  ],
  ["a mistyped workload", POD.replace("kind: Pod", "kind: Pdo"), /stdin:2:7: kind: v1 has no known kind Pdo/],
])("%s in a manifest is a warning, and with --strict an error", async (_what, stdin, message) => {
  const plain = await usher(["review", "-", "--source", EXAMPLES], { stdin });
  expect(plain.code).toBe(0);
  expect(plain.err).not.toBe("");
  const strict = await usher(["review", "-", "--source", EXAMPLES, "--strict"], { stdin });
  expect(strict.err).toMatch(message);
  expect(strict.code).toBe(2);
});

test("what is right passes with --strict", async () => {
  const { code, err } = await usher(["review", "-", "--source", EXAMPLES, "--strict"], { stdin: POD });
  expect(err).toBe("");
  expect(code).toBe(0);
});

test("a policy in a version that its kind does not have is an error: an API server would not take it", async () => {
  const stdin = policy().replace("v1alpha1", "v1");
  const { code, err } = await usher(["review", "-", "--source", EXAMPLES], { stdin });
  expect(err).toMatch(/stdin:1:13: apiVersion: PodSchedulingPolicy has no version/);
  expect(code).toBe(2);
});

test("JSON has the file and line of each object, also in lists, and what is wrong with the input", async () => {
  const directory = folder({
    "a.yaml": `# a comment\n\n---\n# another\n${POD}---\napiVersion: v1\nkind: List\nitems:\n  - ${POD.trim().replaceAll("\n", "\n    ")}\n`,
    "b.json": JSON.stringify(parse(POD)),
    "c.yaml": "kind: [",
  });
  const { out, code } = await usher(["review", directory, "--source", EXAMPLES, "-o", "json"]);
  const { results, problems } = JSON.parse(out);
  expect(code).toBe(2);
  expect(results.map(({ file, line }: { file: string; line: number }) => `${file}:${line}`)).toEqual([
    `${directory}/a.yaml:5`,
    `${directory}/a.yaml:13`,
    `${directory}/b.json:1`,
  ]);
  expect(problems).toEqual([
    {
      from: "input",
      file: `${directory}/c.yaml`,
      line: 1,
      column: 8,
      severity: "error",
      message: expect.any(String),
    },
  ]);
});
