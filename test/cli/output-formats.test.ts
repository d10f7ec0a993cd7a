import { readdirSync, readFileSync } from "node:fs";
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
import { ROOT, usher } from "./usher.ts";

/** Every command that prints data, with a call that finds something, on the examples. */
const example = (path: string) => join(ROOT, "examples", path);
const SOURCE = ["--source", example("cluster")];
const GUARD = ["--source", example("node-guard"), "--feature-gates", "OpenShiftNodeSchedulingPolicy=true"];
const AUDIT = '{"kind":"Event","apiVersion":"audit.k8s.io/v1"}\n';
const CALLS: Readonly<Record<string, readonly string[]>> = {
  Review: ["review", example("pods"), ...SOURCE, "--trace"],
  Lint: ["lint", example("node-labels"), example("drift")],
  Diff: ["diff", "-f", example("what-if/etcd-pool.yaml"), ...SOURCE, "--source", example("pods/etcd.yaml")],
  WhatIf: ["what-if", example("what-if/etcd-pool.yaml"), ...SOURCE, "--source", example("pods/etcd.yaml")],
  Replay: ["replay", "--reviews", example("reviews"), "-f", example("what-if/etcd-pool.yaml"), ...SOURCE],
  Explain: ["explain", "statefulset/etcd-main", "-n", "shop", "--source", example("drift")],
  ExplainList: ["explain", "-f", example("pods/etcd.yaml"), ...SOURCE],
  Test: ["test", example("first-suite")],
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
      if (kind === "Test") return;
      const yaml = parse((await usher([...call, "-o", "yaml"], { stdin: AUDIT })).out);
      expect(validate(yaml) || validate.errors).toBe(true);
    },
  );
});

/** The commands that judge: those with a format for pipelines. */
function commands(): { readonly path: string; readonly formats: readonly string[] }[] {
  const io = { name: "usher", modules: declarations } as unknown as Parameters<typeof program>[0];
  const walk = (command: ReturnType<typeof program>, path: string): { path: string; formats: string[] }[] =>
    command.commands.flatMap((one) => {
      const here = `${path} ${one.name()}`;
      const formats = one.options.find(({ long }) => long === "--output")?.argChoices ?? [];
      return [{ path: here, formats }, ...walk(one, here)];
    });
  return walk(program(io, { code: 0 }), "usher");
}

const judging = commands().filter(({ formats }) => formats.includes("sarif"));

test("the commands that judge have the formats of pipelines, and all others do not", () => {
  expect(judging.map(({ path }) => path)).toEqual([
    "usher review",
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
  for (const { formats } of judging)
    expect(formats).toEqual(expect.arrayContaining(["table", "json", "junit", "sarif", "markdown", "name"]));
});

const isSarif = new AjvDraft04.default({
  strict: false,
  validateFormats: false,
  unicodeRegExp: false,
}).compile(sarifSchema);

describe.each(judging)("$path", ({ path }) => {
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

  test("prints Markdown with a table, and names for xargs", async () => {
    const { out } = await usher([...args, "-o", "markdown"]);
    expect(out).toMatch(/\| --- \|/);
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
