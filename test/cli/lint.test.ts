import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folder, ROOT, usher } from "./usher.ts";

const policy = (name: string, spec: string, kind = "ClusterPodSchedulingPolicy", metadata = "") =>
  `apiVersion: kupid.gardener.cloud/v1alpha1\nkind: ${kind}\nmetadata: {name: ${name}${metadata}}\nspec: ${spec}\n`;

const ALL = "podSelector: {}, namespaceSelector: {}";

interface Found {
  readonly code: string;
  readonly severity: string;
  readonly line: number;
  readonly message: string;
}

async function lint(text: string, ...flags: string[]) {
  const { out, code } = await usher(["lint", "-", "-o", "json", ...flags], { stdin: text });
  return { code, ...(JSON.parse(out) as { problems: Found[]; summary: Record<string, number> }) };
}

const codes = ({ problems }: { readonly problems: readonly Found[] }) =>
  problems.map(({ severity, code, line }) => `${severity} ${code} line ${line}`);

describe("usher lint finds", () => {
  test.each<[string, string, string[]]>([
    ["nothing in a good policy", policy("a", `{${ALL}, nodeSelector: {pool: a}}`), []],
    ["a wrong type", policy("a", `{${ALL}, priority: high}`), ["error USHER-E04 line 4"]],
    [
      "text that is not YAML",
      `${policy("a", `{${ALL}, nodeSelector: {a: b}}`)}---\nkind: [`,
      ["error USHER-E10 line 6"],
    ],
    ["an unknown field", policy("a", `{${ALL}, nodeSelector: {a: b}, pool: c}`), ["error USHER-E11 line 4"]],
    ["a policy without effect", policy("a", `{${ALL}}`), ["warning USHER-E12 line 4"]],
    [
      "a selector that contradicts itself",
      policy(
        "a",
        "{namespaceSelector: {}, podSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: NotIn, values: [b]}]}, nodeSelector: {a: b}}",
      ),
      ["warning USHER-E13 line 4"],
    ],
    [
      "a selector that is missing",
      policy("a", "{podSelector: {}, nodeSelector: {a: b}}"),
      ["warning USHER-E13 line 4"],
    ],
    [
      "two policies of one priority that want different values",
      `${policy("a", `{${ALL}, nodeSelector: {pool: a, zone: z}}`)}---\n${policy("b", `{${ALL}, nodeSelector: {pool: b, disk: d}}`)}`,
      ["warning USHER-E15 line 9"],
    ],
    [
      "a policy that can never apply",
      `${policy("a", `{${ALL}, priority: 5, nodeSelector: {pool: a}}`)}---\n${policy("b", "{podSelector: {matchLabels: {app: web}}, namespaceSelector: {}, nodeSelector: {pool: b}}")}`,
      ["warning USHER-E14 line 9"],
    ],
    [
      "an object that is defined twice",
      `${policy("a", `{${ALL}, nodeSelector: {pool: a}}`)}---\n${policy("a", `{${ALL}, nodeSelector: {pool: a}}`)}`,
      ["error USHER-E17 line 8"],
    ],
    [
      "rules of node labels that set one key of one node",
      ["a", "b"]
        .map(
          (name) =>
            `apiVersion: node-labels.openshift.io/v1beta1\nkind: Labels\nmetadata: {name: ${name}, namespace: x}\nspec: {nodeNamePatterns: [edge-1], labels: {example.com/pool: ${name}}}\n`,
        )
        .join("---\n"),
      ["warning USHER-E15 line 9"],
    ],
    [
      "a limit that an earlier one covers",
      "apiVersion: operator.project.openshift.io/v1\nkind: ProjectRequestLimit\nmetadata: {name: cluster}\nspec:\n  limits:\n    - maxProjects: 1\n    - {selector: {a: b}, maxProjects: 3}\n",
      ["warning USHER-E14 line 7"],
    ],
    [
      "a deprecated version of a configuration",
      "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {featureGates: {OpenShiftNodeSchedulingPolicy: true}}\n---\napiVersion: scheduling.openshift.io/alphav1\nkind: NodeSchedulingPolicyConfig\ngroups: []\n",
      ["warning USHER-E16 line 5", "warning USHER-E12 line 5"],
    ],
    [
      "a wrong setting of a module in the configuration",
      "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec:\n  modules:\n    placement: {resource: []}\n",
      ["error USHER-E04 line 5"],
    ],
    [
      "a field of the configuration that needs another",
      "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec:\n  certificateSecret: mine\n",
      ["error USHER-E04 line 4"],
    ],
  ])("%s", async (_name, text, expected) => {
    const found = await lint(text);
    expect(codes(found)).toEqual(expected);
    expect(found.code).toBe(expected.some((one) => one.startsWith("error")) ? 1 : 0);
  });
});

describe("usher lint leaves alone", () => {
  const conflict = (b: string) =>
    `${policy("a", "{podSelector: {matchLabels: {app: web}}, namespaceSelector: {}, nodeSelector: {pool: a}}")}---\n${b}`;
  test.each([
    [
      "policies of different priority",
      conflict(policy("b", `{${ALL}, priority: 3, targets: Pods, nodeSelector: {pool: b, x: z}}`)),
    ],
    [
      "policies for different pods",
      conflict(
        policy(
          "b",
          "{podSelector: {matchLabels: {app: db}}, namespaceSelector: {}, nodeSelector: {pool: b}}",
        ),
      ),
    ],
    [
      "policies that share only pods with the labels of both",
      conflict(
        policy(
          "b",
          "{podSelector: {matchLabels: {tier: x}}, namespaceSelector: {}, nodeSelector: {pool: b}}",
        ),
      ),
    ],
    [
      "policies for pods and for templates",
      conflict(policy("b", `{${ALL}, targets: Pods, nodeSelector: {pool: b}}`)).replace(
        "{podSelector: {m",
        "{targets: Templates, podSelector: {m",
      ),
    ],
    [
      "objects of other programs, also without a name",
      `${policy("a", `{${ALL}, nodeSelector: {pool: a}}`)}---\napiVersion: example.com/v1\nkind: Thing\n`,
    ],
  ])("%s", async (_name, text) => expect(codes(await lint(text))).toEqual([]));
});

test("a source without policies and configuration is an error: nothing was checked", async () => {
  const { code, err } = await usher(["lint", "-"], {
    stdin: "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n",
  });
  expect({ code, err }).toMatchObject({
    code: 2,
    err: expect.stringContaining("no policies and no configuration"),
  });
});

test("--fail-on warning makes warnings exit with 1, and a file that is not there with 2", async () => {
  const text = policy("a", `{${ALL}}`);
  expect((await lint(text)).code).toBe(0);
  expect((await lint(text, "--fail-on", "warning")).code).toBe(1);
  expect(await usher(["lint", "/does/not/exist.yaml"])).toMatchObject({ code: 2 });
});

test("the configuration beside the policies counts for them", async () => {
  const directory = folder({
    "usher.yaml":
      "apiVersion: usher.dev/v1alpha1\nkind: UsherConfiguration\nspec: {featureGates: {OpenShiftNodeSchedulingPolicy: true}}\n",
    "policy.yaml": readFileSync(join(ROOT, "examples/node-guard/policy.yaml"), "utf8"),
  });
  const { out } = await usher(["lint", directory]);
  expect(out).not.toContain("usher ignores this");
  expect((await usher(["lint", `${directory}/policy.yaml`])).out).toContain("usher ignores this");
});

describe("usher lint --fix", () => {
  const before = `# the pool of the team
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata:
  name: a
  namespace: shop # has no effect
spec:
  podselector: {}   # odd   spacing stays
  namespaceSelector: {}
  priority: "5"
  nodeSelector:
    size: 1.10
  tolerations:
    - key: dedicated
      operator: exists
    - {key: x, operator: Exists}
    - {key: x, operator: Exists} # twice
`;
  const after = before
    .replace("  namespace: shop # has no effect\n", "")
    .replace("podselector", "podSelector")
    .replace('"5"', "5")
    .replace("1.10", '"1.10"')
    .replace("operator: exists", "operator: Exists");

  test("corrects files in place, keeps comments and layout, and says what it did", async () => {
    const directory = folder({ "a.yaml": before });
    const shown = await usher(["lint", directory, "-o", "diff"]);
    expect(readFileSync(`${directory}/a.yaml`, "utf8")).toBe(before);
    expect(shown.out).toContain(
      "-  podselector: {}   # odd   spacing stays\n+  podSelector: {}   # odd   spacing stays",
    );
    const { err } = await usher(["lint", directory, "--fix"]);
    expect(readFileSync(`${directory}/a.yaml`, "utf8")).toBe(after);
    expect(err).toContain("fixed 5 problems in 1 file");
    // The element that means the same shows once the rest is valid.
    const second = await usher(["lint", directory, "--fix"]);
    expect(second.err).toContain("fixed 1 problem in 1 file");
    expect(readFileSync(`${directory}/a.yaml`, "utf8")).toBe(
      after.replace("    - {key: x, operator: Exists} # twice\n", ""),
    );
    expect(await usher(["lint", directory, "--fail-on", "warning"])).toMatchObject({ code: 0 });
  });

  test("never changes what it can't change alone", async () => {
    const text = `{"apiVersion": "kupid.gardener.cloud/v1alpha1", "kind": "ClusterPodSchedulingPolicy", "metadata": {"name": "a", "namespace": "b"},\n"spec": {"podSelector": {}, "podselector": {}, "namespaceSelector": {}, "nodeSelector": {"a": "b"}}}\n`;
    const directory = folder({ "a.json": text });
    await usher(["lint", directory, "--fix"]);
    expect(readFileSync(`${directory}/a.json`, "utf8")).toBe(text);
  });

  test("is refused for standard input", async () => {
    expect(await usher(["lint", "-", "--fix"], { stdin: before })).toMatchObject({ code: 2 });
  });
});

test("--no-recursive reads only the files of a directory itself", async () => {
  const directory = folder({
    "a.yaml": policy("a", `{${ALL}, nodeSelector: {a: b}}`),
    "deep/b.yaml": policy("b", "{nodeSelectr: {}}"),
  });
  expect((await usher(["lint", directory, "-R"])).code).toBe(1);
  expect((await usher(["lint", directory])).code).toBe(1);
  expect((await usher(["lint", directory, "--no-recursive"])).code).toBe(0);
});

test("--kubernetes-version is a release, and only for files", async () => {
  const text = { stdin: policy("a", `{${ALL}, nodeSelector: {a: b}}`) };
  expect((await usher(["lint", "-", "--kubernetes-version", "1.34"], text)).code).toBe(0);
  expect((await usher(["lint", "-", "--kubernetes-version", "new"], text)).err).toContain("such as 1.37");
  expect((await usher(["review", "-", "--kubernetes-version", "1.34"], text)).err).toContain(
    "a cluster says its own version",
  );
});
