import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { folder, ROOT, usher } from "./usher.ts";

/** One policy and one namespace, and a suite of them. */
const POLICY = `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: { name: pool }
spec:
  namespaceSelector: {}
  podSelector: { matchLabels: { app: etcd } }
  nodeSelector: { pool: etcd }
---
apiVersion: v1
kind: Namespace
metadata: { name: shop }
`;

const POD = (more = "") => `
      apiVersion: v1
      kind: Pod
      metadata: { name: p, namespace: shop, labels: { app: etcd } }
      spec: { ${more}containers: [{ name: c, image: "c:1" }] }`;

function suite(cases: string, head = ""): Record<string, string> {
  return {
    "policies.yaml": POLICY,
    "suite.yaml": `apiVersion: usher.dev/v1alpha1\nkind: TestSuite\nsource: [policies.yaml]\n${head}cases:\n${cases}`,
  };
}

const PATCHED = `  - name: etcd runs on its pool
    object:${POD()}
    expect:
      verdict: patch
      fields: { spec.nodeSelector.pool: etcd }
`;
const OTHER = `  - name: another application runs anywhere
    object:${POD().replace("app: etcd", "app: web")}
    expect: { verdict: allow }
`;

async function run(files: Record<string, string>, ...flags: string[]) {
  const directory = folder(files);
  return { directory, ...(await usher(["test", join(directory, "suite.yaml"), ...flags])) };
}

describe("usher test", () => {
  it("passes a suite whose cases hold, with exit code 0", async () => {
    const { code, out, err } = await run(suite(PATCHED + OTHER));
    expect(err).toBe("");
    expect(out).toContain("2 cases: 2 passed, 0 failed");
    expect(code).toBe(0);
  });

  it("shows the difference of manifests and the trace of a failing case, with exit code 1", async () => {
    const { code, out } = await run(suite(PATCHED.replace("pool: etcd }", "pool: fast }")));
    expect(code).toBe(1);
    expect(out).toMatch(/FAILED etcd runs on its pool {2}\S*suite\.yaml:5/);
    expect(out).toContain("fields: spec.nodeSelector.pool: expected fast, got etcd");
    expect(out).toContain("-    pool: fast");
    expect(out).toContain("+    pool: etcd");
    expect(out).toMatch(/ {4}pool +applies/);
  });

  it("reads the suites of a directory, and serves a source with a suite beside its policies", async () => {
    const directory = folder(suite(PATCHED));
    expect((await usher(["test", directory])).code).toBe(0);
    const reviewed = await usher(["review", directory, "--source", directory]);
    expect(reviewed.err).toContain("usher test");
    expect(reviewed.err).not.toContain("has no kind TestSuite");
  });

  it("judges recorded reviews by their own user", async () => {
    const files: Record<string, string> = {
      ...suite("  - name: recorded\n    objectFrom: { file: review.json }\n    expect: { verdict: patch }\n"),
      "review.json": readFileSync(join(ROOT, "examples/reviews/pod.json"), "utf8"),
    };
    expect(await run(files)).toMatchObject({ code: 0 });
    const named = await run({
      ...files,
      "suite.yaml": `${files["suite.yaml"]}    user: eve\n`,
    });
    expect(named.code).toBe(2);
    expect(named.err).toContain("a recorded AdmissionReview says it itself");
  });

  it("judges updates by the stored object, and deletions by the object", async () => {
    const { code, out } = await run(
      suite(
        `${PATCHED}  - name: an update that drops the pool gets it back
    object:${POD("schedulingGates: [{ name: g }], ")}
    old:${POD("nodeSelector: { pool: etcd }, schedulingGates: [{ name: g }], ")}
    expect: { verdict: allow }
  - name: a deletion is not judged
    operation: DELETE
    object:${POD()}
    expect: { verdict: unjudged }
`,
      ),
    );
    expect(out).toContain("3 passed");
    expect(code).toBe(0);
  });
});

describe("a case that proves nothing", () => {
  const wrong: readonly [string, string | Record<string, string>, string][] = [
    ["has no expectation", PATCHED.replace(/ {4}expect:[\s\S]*/, ""), "expect is missing"],
    ["has an empty expectation", PATCHED.replace(/expect:[\s\S]*/, "expect: {}\n"), "verdict: is missing"],
    [
      "expects a field that the object had",
      PATCHED.replace(POD(), POD("nodeSelector: { pool: etcd }, ")),
      "the object has this value already",
    ],
    [
      "expects an untouched field that nothing has",
      OTHER.replace("allow }", "allow, untouched: [spec.nodeSelctor.pool] }") + PATCHED,
      "neither the object has spec.nodeSelctor.pool",
    ],
    [
      "expects a removal of an absent field",
      PATCHED.replace("fields: { spec.nodeSelector.pool: etcd }", "removed: [spec.nodeName]"),
      "the object does not have spec.nodeName",
    ],
    [
      "expects a result of a refusal",
      PATCHED.replace("patch", "deny"),
      "verdict deny has no resulting object",
    ],
    [
      "expects changes of an unchanged object",
      PATCHED.replace("patch", "allow"),
      "allow means that usher changes nothing",
    ],
    [
      "expects causes of an admission",
      PATCHED.replace("fields: { spec.nodeSelector.pool: etcd }", "causes: [{ reason: x }]"),
      "verdict patch has no causes",
    ],
    ["expects null", PATCHED.replace("pool: etcd }", "pool: null }"), "null is not a value"],
    [
      "names an unknown code",
      PATCHED.replace("fields: { spec.nodeSelector.pool: etcd }", "codes: [USHER-P99]"),
      "USHER-P99 is not a code",
    ],
    [
      "names no object",
      "  - name: x\n    expect: { verdict: allow }\n",
      "must have either object or objectFrom",
    ],
    [
      "names an object that the file does not have",
      "  - name: x\n    objectFrom: { file: policies.yaml, kind: Pod }\n    expect: { verdict: allow }\n",
      "no object of policies.yaml is meant",
    ],
    [
      "names several objects",
      "  - name: x\n    objectFrom: { file: policies.yaml }\n    expect: { verdict: allow }\n",
      "2 objects of policies.yaml are meant",
    ],
    [
      "names a file that does not exist",
      "  - name: x\n    objectFrom: { file: none.yaml }\n    expect: { verdict: allow }\n",
      "none.yaml: does not exist",
    ],
    [
      "has an object of a kind that no module judges",
      OTHER.replace(/kind: Pod/, "kind: Secret").replace(/ {6}spec: .*\n/, ""),
      "the case can't fail",
    ],
    ["has an object with a misspelt field", PATCHED.replace("containers:", "contaners:"), "contaners"],
    ["has the name of another case", PATCHED + PATCHED, "is the name of another case"],
    ["has a misspelt field", PATCHED.replace("fields:", "feilds:"), 'did you mean "fields"?'],
    [
      "uses a variable that is not defined",
      PATCHED.replace("app: etcd", 'app: "${app}"'),
      'the variable "app" is not defined',
    ],
    [
      "has a variable that is not used",
      PATCHED.replace("    object:", "    each: [{ app: etcd }]\n    object:"),
      "the variable app is not used",
    ],
    [
      "has rows with different variables",
      PATCHED.replace("    object:", "    each: [{ app: etcd }, { role: main }]\n    object:"),
      "must have the variables of the first row",
    ],
    [
      "has a table without rows",
      PATCHED.replace("    object:", "    each: []\n    object:"),
      "must be a list of rows",
    ],
    ["has a time that is none", PATCHED.replace("    object:", "    time: yesterday\n    object:"), "time"],
    [
      "has a path that is none",
      PATCHED.replace("spec.nodeSelector.pool", "'spec..pool'"),
      "must be the path of a field",
    ],
  ];
  it.each(wrong)("is an error, not a pass: it %s", async (_, cases, message) => {
    const { code, err, out } = await run(suite(cases as string));
    expect(err).toContain(message);
    expect(err).toMatch(/suite\.yaml:\d+:\d+: /);
    expect(err).toContain("^");
    expect(code, out).toBe(2);
  });

  it("is an error where the decision needs an object that the source does not have", async () => {
    const policy = POLICY.replace("namespaceSelector: {}", "namespaceSelector: { matchLabels: { a: b } }");
    const files = suite(PATCHED.replaceAll("namespace: shop", "namespace: none"));
    const { code, err } = await run({ ...files, "policies.yaml": policy });
    expect(err).toContain("the decision needs Namespace none, which the source does not have");
    expect(code).toBe(2);
  });

  it("is an error where no case touches a policy", async () => {
    const { code, err } = await run(suite(OTHER));
    expect(err).toContain("no case touches ClusterPodSchedulingPolicy/pool");
    expect(code).toBe(2);
  });

  it("is an error where a policy under test does not exist", async () => {
    const { code, err } = await run(suite(PATCHED, "policies: [ClusterPodSchedulingPolicy/pol]\n"));
    expect(err).toContain('did you mean "ClusterPodSchedulingPolicy/pool"?');
    expect(code).toBe(2);
  });

  it("is an error where the source has no policies, or invalid ones", async () => {
    const empty = await run({
      ...suite(OTHER),
      "policies.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n",
    });
    expect(empty.err).toContain("has no policies: nothing is tested");
    expect(empty.code).toBe(2);
    const broken = await run({
      ...suite(PATCHED),
      "policies.yaml": POLICY.replace("podSelector", "podSelctor"),
    });
    expect(broken.code).toBe(2);
  });
});

/** Each showed a pass where the result was not the expected one. */
describe("the wrong passes of kyverno test", () => {
  it("kyverno#4294: fails where the expected object lacks a change", async () => {
    const { code, err } = await run(
      suite(
        PATCHED.replace(
          "fields: { spec.nodeSelector.pool: etcd }",
          `object:${POD().replaceAll("\n  ", "\n      ")}`,
        ),
      ),
    );
    expect(err).toContain("it is the object as it was given");
    expect(code).toBe(2);
  });

  it("kyverno#4825: fails where the expected object has only a part of the result", async () => {
    const policy = POLICY.replace("nodeSelector: { pool: etcd }", "nodeSelector: { pool: etcd, disk: nvme }");
    const expected = POD("nodeSelector: { pool: etcd }, ").replaceAll("\n  ", "\n      ");
    const files = suite(PATCHED.replace("fields: { spec.nodeSelector.pool: etcd }", `object:${expected}`));
    const { code, out } = await run({ ...files, "policies.yaml": policy });
    expect(out).toContain("+    disk: nvme");
    expect(code).toBe(1);
  });

  it("kyverno#5187: one part that holds does not hide another that does not", async () => {
    const { code, out } = await run(
      suite(
        PATCHED.replace(
          "fields: { spec.nodeSelector.pool: etcd }",
          "fields: { spec.nodeSelector.pool: fast }\n      warnings: []",
        ),
      ),
    );
    expect(out).toContain("expected fast, got etcd");
    expect(code).toBe(1);
  });

  it("kyverno#13441: fails where the result is not the object of the named file", async () => {
    const other = POD("nodeSelector: { pool: fast }, ").replaceAll("\n  ", "\n      ");
    const { code, out } = await run(
      suite(PATCHED.replace("fields: { spec.nodeSelector.pool: etcd }", `object:${other}`)),
    );
    expect(out).toContain("-    pool: fast");
    expect(code).toBe(1);
  });

  it("kyverno#16100: a difference is a failure whatever verdict is expected, and a refusal has no result to differ", async () => {
    const { code, err } = await run(suite(PATCHED.replace("verdict: patch", "verdict: deny")));
    expect(err).toContain("verdict deny has no resulting object");
    expect(code).toBe(2);
    const deny = await run(suite(PATCHED.replace(/verdict: patch[\s\S]*/, "verdict: deny\n")));
    expect(deny.out).toContain("verdict: expected deny, got patch");
    expect(deny.code).toBe(1);
  });
});

describe("usher test --mutate", () => {
  it("names what no case notices, with file and line, and exits with 1 below the score", async () => {
    const { code, out } = await run(suite(PATCHED), "--mutate");
    expect(out).toMatch(
      /ClusterPodSchedulingPolicy\/pool +spec\.podSelector\.matchLabels\.app +removed +\S*policies\.yaml:7/,
    );
    expect(out).toContain("score 0.666, below 1: cases notice 2 of 3 mutants");
    expect(code).toBe(1);
    expect((await run(suite(PATCHED), "--mutate", "--min-score", "0.6")).code).toBe(0);
    expect((await run(suite(PATCHED + OTHER), "--mutate")).code).toBe(0);
  });

  const accepted = `equivalent:
  - { policy: ClusterPodSchedulingPolicy/pool, path: spec.podSelector.matchLabels.app, reason: all pods are etcds }
`;
  it("accepts a mutant with a reason, and errs once the reason is not needed", async () => {
    expect(await run(suite(PATCHED, accepted), "--mutate")).toMatchObject({ code: 0 });
    const noticed = await run(suite(PATCHED + OTHER, accepted), "--mutate");
    expect(noticed.err).toContain("is not needed");
    expect(noticed.code).toBe(2);
    const absent = await run(
      suite(PATCHED, accepted.replace("matchLabels.app", "matchLabels.role")),
      "--mutate",
    );
    expect(absent.err).toContain("names no mutant");
    expect(absent.code).toBe(2);
  });

  it("tries no mutant while a case fails", async () => {
    const { code, out, err } = await run(suite(PATCHED.replace("pool: etcd }", "pool: fast }")), "--mutate");
    expect(out).not.toContain("score");
    expect(err).toContain("mutants are tried once every case of a suite passes");
    expect(code).toBe(1);
  });
});

describe("output formats", () => {
  const failing = suite(PATCHED.replace("pool: etcd }", "pool: fast }") + OTHER);
  it("json has a version, results, mismatches and the difference", async () => {
    const { code, out } = await run(failing, "-o", "json");
    const report = JSON.parse(out);
    expect(report).toMatchObject({
      kind: "Test",
      summary: { cases: 2, passed: 1, failed: 1, errors: 0 },
    });
    expect(report.suites[0].cases[0]).toMatchObject({
      result: "failed",
      mismatches: [{ path: "fields[spec.nodeSelector.pool]", expected: "fast", real: "etcd" }],
    });
    expect(code).toBe(1);
  });

  it("junit counts failures and errors, and escapes names", async () => {
    const named = PATCHED.replace("etcd runs on its pool", "'a <b> & \"c\"'").replace(
      "pool: etcd }",
      "pool: fast }",
    );
    const { out } = await run(suite(named), "-o", "junit");
    expect(out).toContain('tests="1" failures="1" errors="0"');
    expect(out).toContain('name="a &lt;b&gt; &amp; &quot;c&quot;"');
    expect(out).toContain('<failure message="fields: spec.nodeSelector.pool: expected fast, got etcd">');
  });

  it("markdown is a table with the difference below", async () => {
    const { out } = await run(failing, "-o", "markdown");
    expect(out).toMatch(/\| etcd runs on its pool \| failed \| patch \|/);
    expect(out).toContain("-    pool: fast");
  });

  it("sarif has the line of a failing case, of a mutant, and of an error", async () => {
    const results = async (files: Record<string, string>, ...flags: string[]) =>
      JSON.parse((await run(files, "-o", "sarif", ...flags)).out).runs[0].results;
    const [failed, ...more] = await results(failing);
    expect(more).toEqual([]);
    expect(failed).toMatchObject({ ruleId: "failed-case", level: "error" });
    expect(failed.locations[0].physicalLocation.region).toEqual({ startLine: 5 });
    const [unnoticed] = await results(suite(PATCHED), "--mutate");
    expect(unnoticed).toMatchObject({ ruleId: "unnoticed-mutant", level: "error" });
    expect(unnoticed.locations[0].physicalLocation.artifactLocation.uri).toMatch(/policies\.yaml$/);
    const [accepted] = await results(suite(PATCHED), "--mutate", "--min-score", "0");
    expect(accepted).toMatchObject({ ruleId: "unnoticed-mutant", level: "note" });
    const [error] = await results(suite(OTHER));
    expect(error).toMatchObject({ level: "error", ruleId: expect.stringMatching(/^USHER-E/) });
  });

  it("diff has the manifests of failing cases alone, and wide the objects", async () => {
    const { out, code } = await run(failing, "-o", "diff");
    expect(out).toMatch(/^--- \S+suite\.yaml:5 \(expected\)\n\+\+\+ \S+:5 \(result\)\n@@ /);
    expect(out).toMatch(/^- {4}pool: fast\n\+ {4}pool: etcd$/m);
    expect(code).toBe(1);
    expect((await run(suite(PATCHED + OTHER), "-o", "diff")).out).toBe("");
    expect((await run(failing, "-o", "wide")).out).toMatch(/^passed +allow +Pod shop\/p /m);
  });

  it("--changed-only leaves out cases that pass and mutants that a case notices, and counts them", async () => {
    const { out } = await run(failing, "--changed-only");
    expect(out).toContain("etcd runs on its pool");
    expect(out).not.toContain("another application runs anywhere");
    expect(out).toContain("2 cases: 1 passed, 1 failed");
    const passed = await run(suite(PATCHED + OTHER), "--changed-only");
    expect(passed).toMatchObject({ code: 0, out: "2 cases: 2 passed, 0 failed\n" });
    const { suites, summary } = JSON.parse((await run(failing, "--changed-only", "-o", "json")).out);
    expect(suites[0].cases).toHaveLength(1);
    expect(summary).toMatchObject({ cases: 2, passed: 1 });
    const [mutated] = JSON.parse(
      (await run(suite(PATCHED + OTHER), "--mutate", "--changed-only", "-o", "json")).out,
    ).suites;
    expect(mutated).toMatchObject({ score: 1, mutants: [] });
  });

  it("--kubernetes-version judges by another release than the suite's configuration", async () => {
    const newer = suite(PATCHED.replace("spec: { ", "spec: { hostnameOverride: a, ") + OTHER);
    expect((await run(newer, "--kubernetes-version", "1.34")).code).toBe(0);
    const older = await run(newer, "--kubernetes-version", "1.33");
    expect(older).toMatchObject({ code: 2, err: expect.stringContaining("since 1.34; this is 1.33") });
    const wrong = await run(newer, "--kubernetes-version", "new");
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("such as 1.37") });
  });

  it("github annotates the line of the case, and of a policy that no case notices", async () => {
    const { out } = await run(failing, "-o", "github");
    expect(out).toMatch(/^::error file=\S+suite\.yaml,line=5,title=etcd runs on its pool::fields: /m);
    const mutated = await run(suite(PATCHED), "--mutate", "-o", "github");
    expect(mutated.out).toMatch(/^::warning file=\S+policies\.yaml,line=7,title=/m);
  });
});

describe("usher test --update", () => {
  it("records missing and failing expectations, keeps comments, and prints the difference", async () => {
    const files = suite(`  # Why this case is here.
  - name: etcd runs on its pool
    object:${POD()}
    expect:
      # It is patched.
      verdict: patch
      fields: { spec.nodeSelector.pool: fast } # the pool
  - name: another application
    object:${POD().replace("app: etcd", "app: web")}
`);
    const { directory, code, out } = await run(files, "--update");
    expect(code).toBe(0);
    expect(out).toMatch(/^\+\s+pool: etcd|^\+.*spec\.nodeSelector\.pool: etcd/m);
    const text = readFileSync(join(directory, "suite.yaml"), "utf8");
    expect(text).toContain("# Why this case is here.");
    expect(text).toContain("# It is patched.");
    expect(text.split("\n").slice(0, 8)).toEqual(files["suite.yaml"]?.split("\n").slice(0, 8));
    expect(parse(text).cases.map((one: { expect: unknown }) => one.expect)).toEqual([
      { verdict: "patch", fields: { "spec.nodeSelector.pool": "etcd" } },
      { verdict: "allow" },
    ]);
    expect((await usher(["test", directory])).code).toBe(0);
    expect((await usher(["test", directory, "--update"])).out).toBe("");
  });

  it("leaves rows of a table to a person", async () => {
    const table = PATCHED.replace("pool: etcd }", 'pool: "${pool}" }').replace(
      "    object:",
      "    each: [{ pool: fast }, { pool: etcd }]\n    object:",
    );
    const { code, err } = await run(suite(table), "--update");
    expect(err).toContain("the rows of a table share one expectation");
    expect(code).toBe(1);
  });
});

describe("usher test --record", () => {
  it("makes a suite of the workloads of a source that passes, and does not overwrite one", async () => {
    const directory = folder({});
    const target = join(directory, "suite");
    const source = [
      "--source",
      join(ROOT, "examples/cluster"),
      "--source",
      join(ROOT, "examples/pods/etcd.yaml"),
    ];
    const recorded = await usher(["test", "--record", target, ...source]);
    expect(recorded.err).toContain("Run ");
    expect(recorded.out).toContain("3 cases are recorded");
    expect(recorded.code).toBe(0);
    const { code, err, out } = await usher(["test", target]);
    // Workloads of a cluster need not touch every policy.
    expect(out, err).toContain("3 cases: 3 passed, 0 failed");
    expect(code).toBe(2);
    expect(err).toContain("no case touches PodSchedulingPolicy/shop/fast-disks");
    const again = await usher(["test", "--record", target, ...source]);
    expect(again.code).toBe(2);
    expect(again.err).toContain("is not empty");
  });

  it("records the configuration, by which the suite is judged again", async () => {
    const target = join(folder({}), "suite");
    const config = join(ROOT, "examples/configurations/node-guard.yaml");
    const source = join(ROOT, "examples/node-guard");
    const recorded = await usher(["test", "--record", target, "--source", source, "--config", config]);
    expect(recorded.code, recorded.err).toBe(0);
    expect(parse(readFileSync(join(target, "usher.yaml"), "utf8")).spec).toEqual(
      parse(readFileSync(config, "utf8")).spec,
    );
    const { out, err } = await usher(["test", target]);
    expect(out, err).toContain("2 cases: 2 passed, 0 failed");
  });

  it("judges Pod Security as the webhook does, which leaves it to the API server", async () => {
    const level = "labels: { pod-security.kubernetes.io/enforce: restricted }";
    const target = join(folder({}), "suite");
    const source = folder({
      "cluster.yaml": `apiVersion: v1\nkind: Namespace\nmetadata: { name: shop, ${level} }\n`,
      "policies.yaml": POLICY.split("---")[0] ?? "",
      "pods.yaml": POD().replaceAll("\n      ", "\n"),
    });
    const recorded = await usher(["test", "--record", target, "--source", source]);
    expect(recorded.code, recorded.err).toBe(0);
    const { out, err } = await usher(["test", target]);
    expect(out, err).toContain("1 case: 1 passed, 0 failed");
  });

  it("excludes suites and other modes", async () => {
    for (const args of [
      ["suite.yaml", "--record", "x"],
      ["--record", "x", "--mutate"],
      [],
      ["x", "--min-score", "1"],
      ["x", "--update", "--mutate"],
      ["x", "--source", "y"],
      ["x", "--config", "y"],
      ["x", "-n", "y"],
      ["--record", "x", "--feature-gates", "A=true"],
    ])
      expect((await usher(["test", ...args])).code).toBe(2);
  });
});

describe("hostile suites", () => {
  it("reads no file outside of the directory that usher runs in, or of the suite's", async () => {
    const directory = folder({});
    mkdirSync(join(directory, "a/b"), { recursive: true });
    writeFileSync(join(directory, "secret.yaml"), "token: abc\n");
    symlinkSync(join(directory, "secret.yaml"), join(directory, "a/b/link.yaml"));
    for (const name of ["../../secret.yaml", "/etc/passwd", "link.yaml"]) {
      const text = suite(`  - name: x\n    objectFrom: { file: ${name} }\n    expect: { verdict: allow }\n`);
      for (const [file, content] of Object.entries(text))
        writeFileSync(join(directory, "a/b", file), content);
      const { code, err } = await usher(["test", join(directory, "a/b/suite.yaml")]);
      expect(err).toMatch(/is outside of|must be relative/);
      expect(err).not.toContain("token");
      expect(code).toBe(2);
    }
    expect(existsSync(join(directory, "secret.yaml"))).toBe(true);
  });

  it("bounds tables, and aliases that contain each other", async () => {
    const rows = Array.from({ length: 10_001 }, (_, i) => `{ n: ${i} }`).join(", ");
    const many = await run(suite(PATCHED.replace("    object:", `    each: [${rows}]\n    object:`)));
    expect(many.err).toContain("at most 10000 are allowed");
    expect(many.code).toBe(2);
    const cyclic = await run({
      ...suite(PATCHED),
      "suite.yaml": "apiVersion: usher.dev/v1alpha1\nkind: TestSuite\nsource: &a [*a]\n",
    });
    expect(cyclic.code).toBe(2);
    const laughs = [
      "a: &a [x, x, x, x, x, x, x, x, x, x]",
      ..."bcdefgh"
        .split("")
        .map((n, i) => `${n}: &${n} [${Array.from({ length: 10 }, () => `*${"abcdefg"[i]}`).join(", ")}]`),
    ].join("\n");
    expect(
      (
        await run({
          ...suite(PATCHED),
          "suite.yaml": `apiVersion: usher.dev/v1alpha1\nkind: TestSuite\n${laughs}\n`,
        })
      ).code,
    ).toBe(2);
  });

  it.each([
    ["cases: 5"],
    ["cases: [5]"],
    ["cases: []"],
    ["source: 7\ncases: [{ name: x }]"],
    ["policies: [1]\ncases: [{}]"],
  ])("refuses a suite with %s", async (text) => {
    const { code, err } = await run({
      ...suite(PATCHED),
      "suite.yaml": `apiVersion: usher.dev/v1alpha1\nkind: TestSuite\n${text}\n`,
    });
    expect(err).toMatch(/suite\.yaml:\d+:\d+/);
    expect(code).toBe(2);
  });

  it("says so where there is no suite", async () => {
    const directory = folder({ "policies.yaml": POLICY });
    for (const name of [directory, join(directory, "policies.yaml"), join(directory, "none.yaml")])
      expect((await usher(["test", name])).code).toBe(2);
    expect((await usher(["test", directory])).err).toContain("no TestSuite found");
  });
});
