import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import sarifSchema from "@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json" with { type: "json" };
import { Ajv } from "ajv";
import AjvDraft04 from "ajv-draft-04";
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { program } from "../../src/cli/program.ts";
import { schemaFiles } from "../../src/cli/schema/json-schemas.ts";
import { declarations } from "../../src/modules/index.ts";
import { folder, ROOT, usher } from "./usher.ts";

/** Every command that prints data, with a call that finds something, on the examples. */
const example = (path: string) => join(ROOT, "examples", path);
const SOURCE = ["--source", example("cluster")];
const GUARD = ["--source", example("node-guard"), "--feature-gates", "OpenShiftNodeSchedulingPolicy=true"];
const VARIABLE = "$" + "{verdict}";
const AUDIT = '{"kind":"Event","apiVersion":"audit.k8s.io/v1"}\n';
const CALLS: Readonly<Record<string, readonly string[]>> = {
  Review: ["review", example("pods"), ...SOURCE, "--trace"],
  Lint: ["lint", example("node-labels"), example("drift")],
  Compile: ["compile", ...SOURCE, "--report"],
  Diff: ["diff", "-f", example("what-if/etcd-pool.yaml"), ...SOURCE, "--source", example("pods/etcd.yaml")],
  WhatIf: ["what-if", example("what-if/etcd-pool.yaml"), ...SOURCE, "--source", example("pods/etcd.yaml")],
  Replay: ["replay", "--reviews", example("reviews"), "-f", example("what-if/etcd-pool.yaml"), ...SOURCE],
  Explain: ["explain", "statefulset/etcd-main", "-n", "shop", "--source", example("drift")],
  ExplainList: ["explain", "-f", example("pods/etcd.yaml"), ...SOURCE],
  Test: ["test", example("first-suite"), "--mutate"],
  PlacementStatus: ["placement", "status", "-A", "--source", example("drift")],
  NodeLabelsPlan: ["node-labels", "plan", "--source", example("node-labels")],
  PodSecurityScan: [
    "pod-security",
    "scan",
    example("pod-os/workloads.yaml"),
    "--policy",
    "restricted:latest",
  ],
  NodeGuardList: ["node-guard", "list", ...GUARD],
  NodeGuardInventory: [
    "node-guard",
    "inventory",
    ...GUARD,
    "--source",
    example("pods/on-control-plane.yaml"),
  ],
  NodeGuardReach: ["node-guard", "reach", ...GUARD],
  NodeGuardLearn: ["node-guard", "learn", "--audit-log", "-"],
  NodeGuardOverrideList: ["node-guard", "override", "list", ...GUARD],
  ProjectLimitUsage: ["project-limit", "usage", "--source", example("project-limit")],
};

const schemas = await schemaFiles(declarations);
const printed = Object.keys(schemas).flatMap((path) => /^output\/(.*)\.json$/.exec(path)?.[1] ?? []);

describe("what commands print for programs", () => {
  test("has a call here for every published shape but that of writes, which the tests of a cluster make", () => {
    expect(Object.keys(CALLS).sort()).toEqual(printed.filter((kind) => kind !== "Writes").sort());
  });

  test.each(Object.entries(CALLS))(
    "%s is as its JSON Schema says, in JSON and in YAML",
    async (kind, call) => {
      const validate = new Ajv({ strict: false, validateFormats: false }).compile(
        schemas[`output/${kind}.json`] as object,
      );
      const { out, code } = await usher([...call, "-o", "json"], { stdin: AUDIT });
      expect([0, 1]).toContain(code);
      const value = JSON.parse(out);
      expect(value).toMatchObject({ apiVersion: "cli.usher.dev/v1", kind });
      expect(validate(value) || validate.errors).toBe(true);
      expect(validate({ ...value, another: 1 })).toBe(false);
      const yaml = parse((await usher([...call, "-o", "yaml"], { stdin: AUDIT })).out);
      expect(validate(yaml) || validate.errors).toBe(true);
    },
  );
});

interface Listed {
  readonly path: string;
  readonly formats: readonly string[];
  readonly flags: readonly string[];
  readonly args: readonly string[];
}

/** Every command. */
function commands(): Listed[] {
  const io = { name: "usher", modules: declarations } as unknown as Parameters<typeof program>[0];
  const walk = (command: ReturnType<typeof program>, path: string): Listed[] =>
    command.commands.flatMap((one) => {
      const here = `${path} ${one.name()}`;
      const formats = one.options.find(({ long }) => long === "--output")?.argChoices ?? [];
      const flags = one.options.flatMap(({ long }) => long ?? []);
      const args = one.registeredArguments.map((each) => each.name());
      return [{ path: here, formats, flags, args }, ...walk(one, here)];
    });
  return walk(program(io, { code: 0 }), "usher");
}

/** Formats that a command that judges does not have, and why. */
const MODULE = "its table has all that it knows, and it judges no manifest that it would change";
const WITHOUT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "usher test": { name: "a case is not an object of a cluster" },
  "usher placement status": { wide: MODULE, diff: MODULE },
  "usher node-labels plan": { wide: MODULE, diff: MODULE },
  "usher node-guard inventory": { wide: MODULE, diff: MODULE },
  "usher pod-security scan": { wide: MODULE, diff: MODULE },
  "usher project-limit usage": { wide: MODULE, diff: MODULE },
};
const FORMATS = ["table", "wide", "json", "yaml", "junit", "sarif", "markdown", "name", "diff"];

const judging = commands().filter(({ formats }) => formats.includes("sarif"));

test("the commands that judge have the formats of pipelines, and all others do not", () => {
  expect(judging.map(({ path }) => path)).toEqual([
    "usher review",
    "usher test",
    "usher lint",
    "usher diff",
    "usher what-if",
    "usher replay",
    "usher placement status",
    "usher node-labels plan",
    "usher node-guard inventory",
    "usher pod-security scan",
    "usher project-limit usage",
  ]);
  for (const { path, formats, flags } of judging) {
    const missing = FORMATS.filter((format) => !formats.includes(format));
    expect({ path, missing }).toEqual({ path, missing: Object.keys(WITHOUT[path] ?? {}) });
    expect(flags, path).toContain("--changed-only");
    expect(flags, path).toContain("--kubernetes-version");
  }
});

test("every command that reads manifests takes -k and -R, and no other does", () => {
  const reading = commands().filter(({ flags }) => flags.includes("--kustomize"));
  for (const { flags } of reading)
    expect(flags).toEqual(expect.arrayContaining(["--recursive", "--no-recursive"]));
  // The others with files read one file of another form, or suites, which are not manifests.
  const files = commands().filter(({ flags, args }) => args.includes("file") || flags.includes("--filename"));
  const others = files.filter(({ flags }) => !flags.includes("--kustomize")).map(({ path }) => path);
  // -f of compile is another name of --source.
  expect(others).toEqual(["usher compile", "usher project-limit import", "usher project-limit backfill"]);
});

const isSarif = new AjvDraft04.default({
  strict: false,
  validateFormats: false,
  unicodeRegExp: false,
}).compile(sarifSchema);

/** A call of each command that reads manifests, without the manifests, and what it prints of those of the folder. */
const EDITED = readFileSync(example("what-if/etcd-pool.yaml"), "utf8");
const PODS = readFileSync(example("pods/etcd.yaml"), "utf8");
const KYVERNO = readFileSync(example("import/add-tolerations.yaml"), "utf8");
const ANNOTATED = readFileSync(example("import/namespaces.yaml"), "utf8");
const STORED = ["--source", example("pods/etcd.yaml")];
const READING: Readonly<
  Record<string, readonly [manifests: string, args: readonly string[], prints: string]>
> = {
  "usher review": [PODS, SOURCE, "StatefulSet shop/etcd-main   patch"],
  "usher lint": [EDITED, [], "with 1 policy"],
  "usher diff": [EDITED, [...SOURCE, ...STORED], "+ nodeSelector pool=etcd-2027"],
  "usher what-if": [EDITED, [...SOURCE, ...STORED], "+ nodeSelector pool=etcd-2027"],
  "usher explain": [PODS, SOURCE, "StatefulSet shop/etcd-main"],
  "usher replay": [EDITED, ["--reviews", example("reviews"), ...SOURCE], "+ nodeSelector pool=etcd-2027"],
  "usher import kyverno": [KYVERNO, [], "kind: ClusterPodSchedulingPolicy"],
  "usher import in-tree": [ANNOTATED, [], "kind: ClusterPodSchedulingPolicy"],
  "usher pod-security scan": [PODS, ["--policy", "restricted:latest"], "StatefulSet shop/etcd-main"],
};

describe("manifests", () => {
  test("have a call here for every command that reads them", () => {
    const reading = commands().filter(({ flags }) => flags.includes("--kustomize"));
    expect(Object.keys(READING)).toEqual(reading.map(({ path }) => path));
  });

  test.each(Object.entries(READING))(
    "%s builds those of -k, and says which program is missing",
    async (path, [manifests, args, prints]) => {
      const directory = folder({
        "all.yaml": manifests,
        "bin/kustomize": '#!/bin/sh\n/bin/cat "$2/all.yaml"\n',
      });
      chmodSync(join(directory, "bin/kustomize"), 0o755);
      const call = [...path.split(" ").slice(1), "-k", directory, ...args];
      const before = process.env["PATH"];
      try {
        process.env["PATH"] = join(directory, "bin");
        const built = await usher(call);
        expect(built.out).toContain(prints);
        expect([0, 1]).toContain(built.code);
        process.env["PATH"] = join(directory, "nowhere");
        const { code, err } = await usher(call);
        expect({ code, err }).toEqual({
          code: 2,
          err: expect.stringContaining(`-k ${directory}: needs kubectl or kustomize in PATH`),
        });
        writeFileSync(join(directory, "bin/kustomize"), "#!/bin/sh\necho no such base >&2\nexit 1\n");
        process.env["PATH"] = join(directory, "bin");
        expect((await usher(call)).err).toContain("kustomize build failed: no such base");
      } finally {
        process.env["PATH"] = before;
      }
    },
  );

  test.each(Object.entries(READING))(
    "%s descends into directories, and with --no-recursive does not",
    async (path, [manifests, args, prints]) => {
      const directory = folder({ "deep/all.yaml": manifests, "empty.yaml": "# nothing\n" });
      const isFlag = ["usher diff", "usher explain", "usher replay"].includes(path);
      const call = [...path.split(" ").slice(1), ...(isFlag ? ["-f"] : []), directory, ...args];
      expect((await usher([...call, "-R"])).out).toContain(prints);
      expect((await usher([...call, "--no-recursive"])).out).not.toContain(prints);
    },
  );
});

/** The things that an output names, of a format in which each has its own place. */
function thingsIn(format: string, out: string): number {
  if (format === "junit") return out.match(/<testcase /g)?.length ?? 0;
  if (format === "sarif") return JSON.parse(out).runs[0].results.length;
  return out.split("\n").length;
}

describe.each(judging)("$path", ({ path, formats }) => {
  const call = Object.values(CALLS).find((one) => `usher ${one.join(" ")}`.startsWith(`${path} `)) ?? [];
  const args = call.filter((one) => one !== "--trace");

  test("prints SARIF 2.1.0, whose rules have help and whose results name a rule", async () => {
    const log = JSON.parse((await usher([...args, "-o", "sarif"])).out);
    expect(isSarif(log) || isSarif.errors).toBe(true);
    const [{ tool, results }] = log.runs;
    expect(results).not.toEqual([]);
    for (const { help } of tool.driver.rules) expect(help?.text).toMatch(/What to do: /);
    for (const { ruleId, ruleIndex, message } of results) {
      expect(tool.driver.rules[ruleIndex].id).toBe(ruleId);
      expect(message.text).not.toBe("");
    }
  });

  test("prints JUnit with a test case for each thing that it judged", async () => {
    const { out, code } = await usher([...args, "-o", "junit"]);
    expect(XMLValidator.validate(out)).toBe(true);
    const { testsuites } = new XMLParser({ ignoreAttributes: false }).parse(out);
    const cases = [testsuites.testsuite.testcase].flat();
    expect(cases.length).toBe(Number(testsuites["@_tests"]));
    const failures = cases.filter((one) => one.failure !== undefined).length;
    expect(failures).toBe(Number(testsuites["@_failures"]));
    if (failures > 0) expect(code).toBe(1);
  });

  test("ends with the same exit code in every format, and with --changed-only, which adds nothing", async () => {
    const { code } = await usher(args);
    expect([0, 1]).toContain(code);
    for (const format of formats) {
      const all = await usher([...args, "-o", format]);
      const changed = await usher([...args, "-o", format, "--changed-only"]);
      expect({ format, code: all.code }).toEqual({ format, code });
      expect({ format, code: changed.code }).toEqual({ format, code });
      expect(all.out === "" && format !== "diff", format).toBe(false);
      expect(thingsIn(format, changed.out)).toBeLessThanOrEqual(thingsIn(format, all.out));
      if (format === "junit")
        for (const one of changed.out.match(/<testcase [^>]*>/g) ?? []) expect(one).not.toMatch(/\/>$/);
      if (format === "yaml") expect(parse(all.out)).toMatchObject({ apiVersion: "cli.usher.dev/v1" });
      if (format === "diff" && all.out !== "") expect(all.out).toMatch(/^--- .*\n\+\+\+ .*\n@@ /m);
    }
  }, 120_000);

  test("prints Markdown with a table, and names for xargs", async () => {
    const { out } = await usher([...args, "-o", "markdown"]);
    expect(out).toMatch(/\| --- \|/);
    if (!formats.includes("name")) return;
    const names = (await usher([...args, "-o", "name"])).out.trim().split("\n");
    for (const name of names) expect(name).toMatch(/^[a-z]+\/\S+$/);
  });
});

test("text of a manifest can't break out of any format", async () => {
  const name = 'a"]]><x>&|`[b](javascript:x)\u0007\u202e';
  const pod = JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "shop", labels: { kind: "batch" } },
    spec: {
      nodeSelector: { "topology.kubernetes.io/zone": `z${name}` },
      containers: [{ name: "a", image: "b" }],
    },
  });
  for (const format of ["junit", "sarif", "markdown", "name", "table", "wide", "diff"]) {
    const { out } = await usher(["review", "-", ...SOURCE, "-o", format], { stdin: pod });
    expect(out).not.toMatch(/[\u0007\u202e]/);
    if (format === "junit") expect(XMLValidator.validate(out)).toBe(true);
    if (format === "sarif") expect(isSarif(JSON.parse(out))).toBe(true);
    if (format === "markdown") expect(out).not.toMatch(/(?<!\\)(\[b\]|<x>)/);
  }
});

test("--changed-only leaves out what is as it should be, and counts it still", async () => {
  const all = await usher(["review", example("pods"), ...SOURCE]);
  const changed = await usher(["review", example("pods"), ...SOURCE, "--changed-only"]);
  expect(all.out).toContain("Pod lab/scratch");
  expect(changed.out).not.toContain("Pod lab/scratch");
  expect(changed.out.split("\n").at(-2)).toBe(all.out.split("\n").at(-2));
  const scan = ["pod-security", "scan", example("pod-os/workloads.yaml"), "--policy", "restricted:latest"];
  const cases = async (...flags: string[]) =>
    (await usher([...scan, "-o", "junit", ...flags])).out.match(/<testcase/g)?.length ?? 0;
  expect(await cases("--changed-only")).toBeLessThanOrEqual(await cases());
});

describe("schemas for editors", () => {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  const validate = ajv.compile(schemas["usher.json"] as object);
  const files = readdirSync(join(ROOT, "examples"), { recursive: true, encoding: "utf8" })
    .filter((file) => /\.ya?ml$/.test(file))
    .map((file) => join(ROOT, "examples", file));

  test.each(files)("%s has a modeline and is valid by the schema that it names", (file) => {
    const text = readFileSync(file, "utf8");
    const [, named = ""] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text) ?? [];
    expect(readFileSync(join(file, "..", named), "utf8")).toBe(
      `${JSON.stringify(schemas["usher.json"], null, 2)}\n`,
    );
    for (const document of parseAllDocuments(text)) {
      const value = document.toJS();
      if (value !== null) expect(validate(value) || validate.errors).toBe(true);
    }
  });

  test("know the suites of the modules' READMEs, and find a typo in a case", () => {
    const suites = declarations.map(({ name }) => {
      const readme = readFileSync(join(ROOT, "src", "modules", name, "README.md"), "utf8");
      return parse(/^```yaml suite\n([\s\S]*?)^```/m.exec(readme)?.[1] ?? "");
    });
    const check = ajv.compile(schemas["kinds/TestSuite.json"] as object);
    for (const suite of suites) {
      expect(check(suite) || check.errors).toBe(true);
      const [first] = suite.cases;
      expect(check({ ...suite, cases: [{ ...first, expct: first.expect }] })).toBe(false);
      expect(check({ ...suite, cases: [{ ...first, expect: { verdict: "refuse" } }] })).toBe(false);
      expect(check({ ...suite, cases: [{ ...first, expect: { verdict: VARIABLE } }] })).toBe(true);
    }
  });

  test("find a field with a typo and a value of a wrong type, in every kind", () => {
    const kinds = Object.keys(schemas).filter((path) => path.startsWith("kinds/"));
    // OpenShift's own kind may have fields that usher does not read.
    const own = kinds.filter((path) => path !== "kinds/Scheduler.json");
    expect(kinds.length).toBeGreaterThan(10);
    for (const path of own) {
      const check = ajv.compile(schemas[path] as object);
      const { properties } = schemas[path] as {
        properties: { apiVersion: { enum: string[] }; kind: { const: string } };
      };
      const head = {
        apiVersion: properties.apiVersion.enum[0],
        kind: properties.kind.const,
        metadata: { name: "a" },
      };
      expect(check({ ...head, spec: { nonsense: 1 } })).toBe(false);
      expect(check({ ...head, kind: "Other" })).toBe(false);
    }
  });
});

describe("usher schema", () => {
  test("lists the kinds, and describes a kind, a field, and fields of fields", async () => {
    expect((await usher(["schema"])).out).toMatch(/^UsherConfiguration /m);
    expect((await usher(["schema", "cpsp"])).out).toMatch(
      /^KIND: {5}ClusterPodSchedulingPolicy\nVERSION: {2}kupid/,
    );
    const field = (await usher(["schema", "clusterpodschedulingpolicies.spec.tolerations"])).out;
    expect(field).toMatch(/^FIELD: tolerations <\[\]Object>$/m);
    expect(field).toMatch(/^ {2}operator <string>/m);
    expect((await usher(["schema", "labels", "--recursive"])).out).toMatch(
      /^ {4}nodeNamePatterns <\[\]string>$/m,
    );
  });

  test("prints the published JSON Schema", async () => {
    expect(JSON.parse((await usher(["schema", "-o", "json"])).out)).toEqual(schemas["usher.json"]);
    const { $schema: _, ...labels } = schemas["kinds/Labels.json"] as Record<string, unknown>;
    expect(JSON.parse((await usher(["schema", "Labels", "-o", "json"])).out)).toEqual(labels);
  });

  test.each([
    [
      "clusterpodschedulingpolic",
      'unknown kind clusterpodschedulingpolic; did you mean "ClusterPodSchedulingPolicy"?',
    ],
    [
      "cpsp.spec.toleration",
      'ClusterPodSchedulingPolicy.spec has no field toleration; did you mean "tolerations"?',
    ],
    ["labels.spec.priority.x", "Labels.spec.priority has no field x; it has no fields"],
  ])("%s is an error that says what was meant", async (what, message) => {
    expect(await usher(["schema", what])).toMatchObject({ code: 2, out: "", err: `usher: ${message}\n` });
  });
});
