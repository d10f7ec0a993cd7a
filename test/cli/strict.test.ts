import { describe, expect, it, test } from "vitest";
import { parse } from "yaml";
import { EXAMPLES, folder, ROOT, usher } from "./usher.ts";

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
    /a.yaml:2:7: warning: kind: kupid.gardener.cloud has no kind PodSchedulingPolcy.*\n[\s\S]*did you mean "PodSchedulingPolicy"/,
  ],
  [
    "a namespaced policy without namespace",
    policy({ metadata: "name: a" }),
    /a.yaml:3:1: warning: metadata.namespace: is missing: the policy is in namespace default/,
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

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: "3"
  template:
    spec:
      containers:
        - name: m
          imagePullPolcy: Always
`;

test("fields of Kubernetes' own kinds are checked with --strict, and only then", async () => {
  const plain = await usher(["review", "-", "--source", EXAMPLES], { stdin: DEPLOYMENT });
  expect(plain).toMatchObject({ code: 0, err: "" });
  const strict = await usher(["review", "-", "--source", EXAMPLES, "--strict"], { stdin: DEPLOYMENT });
  expect(strict.err).toBe(`stdin:5:13: spec.replicas: must be an integer, got "3"
   4 | spec:
   5 |   replicas: "3"
     |             ^^^ write it without quotes
stdin:10:11: spec.template.spec.containers[0].imagePullPolcy: unknown field, has no effect
    9 |         - name: m
   10 |           imagePullPolcy: Always
      |           ^^^^^^^^^^^^^^ did you mean "imagePullPolicy"?
`);
  expect(strict.code).toBe(2);
  expect(strict.out).toMatch(/Deployment shop\/web +patch/);
});

test.each([
  ["1.33", 2, /spec.hostnameOverride: unknown field.*\n[\s\S]*Kubernetes has it since 1.34; this is 1.33/],
  ["1.34", 0, /^$/],
  ["1.99", 0, /^fields are checked as Kubernetes 1.37 has them: those of 1.99 are not known\n$/],
])("kubernetesVersion %s chooses the fields that --strict knows", async (version, code, err) => {
  const config = folder({
    "config.yaml": `apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {kubernetesVersion: "${version}"}\n`,
  });
  const args = ["review", "-", "--source", EXAMPLES, "--strict", "--config", `${config}/config.yaml`];
  const stdin = POD.replace("{containers", "{hostnameOverride: a, containers");
  const ran = await usher(args, { stdin });
  expect(ran.err).toMatch(err);
  expect(ran.code).toBe(code);
});

test.each([
  ["extensions/v1beta1", "Deployment", "1.16", "apps/v1"],
  ["apps/v1beta1", "StatefulSet", "1.16", "apps/v1"],
  ["apps/v1beta2", "DaemonSet", "1.16", "apps/v1"],
  ["batch/v2alpha1", "CronJob", "1.21", "batch/v1"],
  ["batch/v1beta1", "CronJob", "1.25", "batch/v1"],
])(
  "%s %s is a note, and with --strict an error that names the version to use",
  async (old, kind, since, use) => {
    const stdin = `apiVersion: ${old}\nkind: ${kind}\nmetadata: {name: web, namespace: shop}\nspec: {}\n`;
    const message = `API servers have no ${old} ${kind} since Kubernetes ${since}; write apiVersion: ${use}\n`;
    const plain = await usher(["review", "-", "--source", EXAMPLES], { stdin });
    expect(plain).toMatchObject({ code: 0, err: message });
    const strict = await usher(["review", "-", "--source", EXAMPLES, "--strict"], { stdin });
    expect(strict.err).toContain(`stdin:1:13: apiVersion: ${message}`);
    expect(strict.code).toBe(2);
  },
);

test("accepts valid input with --strict", async () => {
  const { code, err } = await usher(["review", "-", "--source", EXAMPLES, "--strict"], { stdin: POD });
  expect(err).toBe("");
  expect(code).toBe(0);
});

test("a policy in a version that its kind does not have is an error, as an API server would reject it", async () => {
  const stdin = policy().replace("v1alpha1", "v1");
  const { code, err } = await usher(["review", "-", "--source", EXAMPLES], { stdin });
  expect(err).toMatch(/stdin:1:13: apiVersion: PodSchedulingPolicy has no version/);
  expect(code).toBe(2);
});

test("JSON has the file and line of each object, also in lists, and the problems of the input", async () => {
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
      code: "USHER-E10",
      message: "a bracket is not closed",
      hint: "end it with ], and indent its lines",
    },
  ]);
});

test("facts that policies need and the source does not have are an error with --strict", async () => {
  const by = "namespaceSelector: {matchLabels: {a: b}}, ";
  const source = folder({
    "a.yaml": policy({ kind: "ClusterPodSchedulingPolicy", metadata: "name: a" }).replace(
      "{podS",
      `{${by}podS`,
    ),
  });
  const plain = await usher(["review", "-", "--source", source], { stdin: POD });
  expect(plain).toMatchObject({ code: 0, err: expect.stringContaining("unknown: the source does not have") });
  const strict = await usher(["review", "-", "--source", source, "--strict"], { stdin: POD });
  expect(strict.err).toContain("--strict: 1 of what policies need is unknown: add it to the source\n");
  expect(strict.code).toBe(2);
});

test("warnings are exit code 1 with --fail-on warning", async () => {
  const args = ["review", `${ROOT}/examples/pods/etcd.yaml`, "--source", EXAMPLES];
  expect((await usher(args)).code).toBe(0);
  expect((await usher([...args, "--fail-on", "warning"])).code).toBe(1);
  expect(
    (await usher(["review", "-", "--source", EXAMPLES, "--fail-on", "warning"], { stdin: POD })).code,
  ).toBe(0);
});

test("reports a workload whose pods will be denied, with exit code 1", async () => {
  const source = folder({
    "cluster.yaml":
      "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: baseline}}\n",
    "config.yaml":
      "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {modules: {pod-os: {podSecurity: {mode: Replace}}}}\n",
  });
  const stdin = (hostNetwork: boolean) =>
    `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {template: {spec: {hostNetwork: ${hostNetwork}, containers: [{name: c, image: a}]}}}\n`;
  const args = ["review", "-", "--source", `${source}/cluster.yaml`, "--config", `${source}/config.yaml`];
  const { code, out } = await usher(args, { stdin: stdin(true) });
  expect(out).toMatch(
    /Deployment shop\/web +allow +! pods denied: spec.hostNetwork: must be false or absent +pod-os/,
  );
  expect(out).toContain("1 unchanged, 0 patched, 0 denied, 1 without pods, which are denied");
  expect(code).toBe(1);
  const json = await usher([...args, "-o", "json"], { stdin: stdin(true) });
  expect(JSON.parse(json.out).results).toMatchObject([
    { verdict: "allow", violations: [], podViolations: [{ module: "pod-os" }] },
  ]);
  expect((await usher(args, { stdin: stdin(false) })).code).toBe(0);
});

test("reports a chart as such, and skips a kustomization with a note", async () => {
  const chart = folder({
    "Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n",
    "values.yaml": "a: 1\n",
  });
  expect(await usher(["review", chart, "--source", EXAMPLES])).toMatchObject({
    code: 2,
    err: `${chart}/Chart.yaml: ${chart} is a Helm chart, not manifests: use helm template ${chart} | usher review -\n`,
  });
  const base = folder({
    "kustomization.yaml":
      "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [pod.yaml]\n",
    "pod.yaml": POD,
  });
  const { code, out, err } = await usher(["review", base, "--source", EXAMPLES]);
  expect(err).toBe(`${base}/kustomization.yaml: not read: use -k ${base} to read what it makes\n`);
  expect(out).toContain("1 object: ");
  expect(code).toBe(0);
});
