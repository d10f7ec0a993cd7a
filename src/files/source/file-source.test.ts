import { rename, rm, truncate } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Directory, greetingYaml, wordsOf } from "../../../test/conformance/directory.ts";
import { MAX_FILE_BYTES } from "../reader/bytes.ts";
import { openFiles } from "./file-source.ts";

let directory: Directory;

beforeEach(async () => {
  directory = await Directory.make();
});

afterEach(() => directory.end());

const NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: cp-0}\n";

describe("opening", () => {
  test("reads YAML and JSON at any depth, and nothing else", async () => {
    await directory.write("a.yaml", greetingYaml("one", "hello"));
    await directory.write("deep/er/b.YML", greetingYaml("two", "hello"));
    await directory.write(
      "c.json",
      JSON.stringify({
        apiVersion: "v1",
        kind: "List",
        items: [{ apiVersion: "v1", kind: "Node", metadata: { name: "cp-0" } }],
      }),
    );
    await directory.write(".hidden.yaml", "broken: [");
    await directory.write(".git/x.yaml", "broken: [");
    await directory.write("README.md", "broken: [");
    const source = await directory.open();
    expect(directory.said()).toBe("");
    expect(source.problems).toEqual([]);
    expect(source.ready).toBe(true);
    expect(source.summary).toEqual({
      policies: 2,
      files: 3,
      objects: { "greetings.conformance.usher.dev": 2, nodes: 1 },
    });
  });

  test("a single file is a source as well", async () => {
    await directory.write("a.yaml", greetingYaml("one", "hello"));
    await directory.write("b.yaml", greetingYaml("two", "hello"));
    const source = await directory.open({ directory: directory.at("a.yaml") });
    expect(wordsOf(source)).toEqual({ one: "hello" });
    await directory.write("a.yaml", greetingYaml("one", "[broken"));
    await source.refresh();
    expect(source.problems[0]?.file).toBe(directory.at("a.yaml"));
  });

  test("reports a missing directory", async () => {
    await expect(directory.open({ directory: directory.at("none") })).rejects.toThrow(
      `${directory.at("none")} does not exist; pass a directory of YAML files or a single file`,
    );
  });

  test("an invalid policy is reported and evaluated like a stored one, and the rest works", async () => {
    await directory.write(
      "policies.yaml",
      `${greetingYaml("good", "hello")}---\n${greetingYaml("bad", "hello", "  operator: Exist\n")}`,
    );
    const source = await directory.open();
    expect(wordsOf(source)).toEqual({ good: "hello", bad: "hello" });
    expect(directory.said()).toBe(
      [
        'policies.yaml:14:13: spec.operator: unsupported value "Exist": must be one of Exists, Equal',
        "   13 |   word: hello",
        "   14 |   operator: Exist",
        '      |             ^^^^^ did you mean "Exists"?',
        "the rest of this file is served (1 policy); invalid policies follow their failure mode",
      ].join("\n"),
    );
    expect(source.problems).toMatchObject([
      { line: 14, column: 13, severity: "error", object: "Greeting bad" },
    ]);
  });

  test("a warning is reported, and the object is used", async () => {
    await directory.write("node.yaml", NODE.replace("name: cp-0", "name: cp-0, namespace: shop"));
    const source = await directory.open();
    expect(source.summary.objects).toEqual({ nodes: 1 });
    expect(directory.reports).toMatchObject([{ level: "warning" }]);
    expect(directory.said()).toContain("metadata.namespace: has no effect: Node is cluster-scoped");
  });

  test("an unknown field of a policy is an error, and the policy counts as an API server would store it", async () => {
    await directory.write("policies.yaml", greetingYaml("one", "hello", "  wrod: x\n"));
    const source = await directory.open();
    expect(wordsOf(source)).toEqual({ one: "hello" });
    expect(directory.reports).toMatchObject([{ level: "error" }]);
    const said = directory.said();
    expect(said).toContain("policies.yaml:7:3: spec.wrod: unknown field");
    expect(said.split("\n").at(-1)).toBe("policies with unknown fields count without these fields");
  });

  test("a policy with an unknown field and another error follows its failure mode", async () => {
    const both = greetingYaml("bad", "hello", "  wrod: x\n  operator: Exist\n");
    await directory.write("policies.yaml", `${both}---\n${greetingYaml("one", "hello", "  wrod: x\n")}`);
    await directory.open();
    expect(directory.said().split("\n").at(-1)).toBe(
      "policies with unknown fields count without these fields; invalid policies follow their failure mode",
    );
  });

  test("a policy in a version that is not served is an error, and does not count", async () => {
    const [group] = greetingYaml("one", "hello").match(/(?<=apiVersion: ).*(?=\/)/) ?? [];
    const other = greetingYaml("two", "hello").replace(/apiVersion: .*/, `apiVersion: ${group}/v9`);
    await directory.write("policies.yaml", `${greetingYaml("one", "hello")}---\n${other}`);
    const source = await directory.open();
    expect(wordsOf(source)).toEqual({ one: "hello" });
    const said = directory.said();
    expect(said).toMatch(/policies.yaml:\d+:13: apiVersion: Greeting has no version/);
    expect(said).toContain("the rest of this file is served (1 policy)");
  });

  test("an unreadable document is left out alone, and every error in it is reported", async () => {
    await directory.write(
      "policies.yaml",
      `${greetingYaml("one", "hello")}---\na: "\\q"\nb: "\\q"\n---\n${greetingYaml("two", "hello")}`,
    );
    const source = await directory.open();
    expect(wordsOf(source)).toEqual({ one: "hello", two: "hello" });
    expect(source.problems.map(({ line, column }) => [line, column])).toEqual([
      [8, 5],
      [9, 5],
    ]);
  });

  test("objects without required fields are reported", async () => {
    await directory.write("a.yaml", "kind: Node\n---\napiVersion: v1\nkind: Node\nmetadata: {}\n---\n- a\n");
    await directory.write(
      "b.yaml",
      `${NODE}---\napiVersion: v1\nkind: Node\nmetadata: {name: 1, labels: {a: yes}}\n`,
    );
    const source = await directory.open();
    expect(source.summary.objects).toEqual({ nodes: 1 });
    expect(source.problems.map(({ message }) => message)).toEqual([
      "apiVersion: is required",
      "metadata.name: is required",
      "metadata.name: is required",
      "not a Kubernetes object: apiVersion, kind and metadata are required",
      "metadata.name: must be a string, got 1",
      "metadata.labels.a: must be a string, got true",
    ]);
  });

  test("a duplicate object: both positions are reported, and the first one by file name stays", async () => {
    await directory.write("b.yaml", greetingYaml("one", "second"));
    await directory.write("a.yaml", `# first\n${greetingYaml("one", "first")}`);
    const source = await directory.open();
    expect(wordsOf(source)).toEqual({ one: "first" });
    expect(directory.said()).toBe(
      [
        `b.yaml:4:9: Greeting one is defined in a.yaml:5:9 already; that one is used`,
        "   3 | metadata:",
        "   4 |   name: one",
        "     |         ^^^ remove one of them",
      ].join("\n"),
    );
    await rm(directory.at("a.yaml"));
    await source.refresh();
    expect(wordsOf(source)).toEqual({ one: "second" });
    expect(source.problems).toEqual([]);
  });

  test("a duplicate object in one file is reported", async () => {
    await directory.write("a.yaml", `${greetingYaml("one", "first")}---\n${greetingYaml("one", "first")}`);
    const source = await directory.open();
    expect(wordsOf(source)).toEqual({ one: "first" });
    expect(source.problems).toMatchObject([{ line: 11, object: "Greeting one" }]);
    await directory.write(
      "a.yaml",
      `# no change\n${greetingYaml("one", "first")}---\n${greetingYaml("one", "first")}`,
    );
    await source.refresh();
    expect(source.problems).toMatchObject([{ line: 12 }]);
  });

  test("objects are stored as the API server stores them", async () => {
    await directory.write(
      "a.yaml",
      [
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {env: prod}}\n",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
        "apiVersion: v1\nkind: Node\nmetadata: {name: cp-0, namespace: odd}\n",
        "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t1, namespace: shop}\n",
        "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t2}\n",
      ].join("---\n"),
    );
    const source = await directory.open();
    expect(source.find("v1", "Namespace", undefined, "shop")).toMatchObject({
      metadata: { labels: { env: "prod", "kubernetes.io/metadata.name": "shop" } },
    });
    expect(source.find("v1", "ConfigMap", undefined, "web")).toMatchObject({
      metadata: { namespace: "default" },
    });
    expect(source.find("v1", "ConfigMap", "shop", "web")).toBeUndefined();
    expect(source.find("v1", "Node", undefined, "cp-0")).toEqual({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: "cp-0" },
    });
    expect(source.find("example.org/v1", "Thing", "shop", "t1")).toBeDefined();
    expect(source.find("example.org/v1", "Thing", undefined, "t2")).toBeDefined();
    expect(directory.said()).toContain("metadata.namespace: has no effect: Node is cluster-scoped");
  });

  test("reports what it lacks: an access review fails, and a kind in no file is not served", async () => {
    const source = await directory.open();
    const [fact] = await source.fetch([{ access: {} }], {
      remaining: () => 1,
      signal: new AbortController().signal,
    });
    expect(fact).toEqual({ failed: expect.stringContaining("no authorizer") });
    expect(source.assembly.view.served("configmaps")).toBe(false);
    expect(source.assembly.view.served("greetings.conformance.usher.dev")).toBe(true);
  });
});

describe("reading again", () => {
  test("reports changed, added and removed objects, and nothing else", async () => {
    await directory.write("policies.yaml", `${greetingYaml("one", "a")}---\n${greetingYaml("two", "a")}`);
    const source = await directory.open();
    await directory.write(
      "policies.yaml",
      `${greetingYaml("one", "b")}---\n${greetingYaml("three", "a")}---\n${NODE}`,
    );
    await source.refresh();
    expect(directory.said()).toBe(
      "policies.yaml: 1 policy added (three), 1 policy changed (one), 1 policy removed (two), 1 node added (cp-0)",
    );
    expect(wordsOf(source)).toEqual({ one: "b", three: "a" });
    await directory.write(
      "policies.yaml",
      `# only words\n${greetingYaml("one", "b")}---\n${greetingYaml("three", "a")}---\n${NODE}`,
    );
    await source.refresh();
    await source.refresh();
    expect(directory.said()).toBe("");
  });

  test.each([
    ["a field that is not known", (text: string) => text.replace("word:", "wrod: x\n  word:")],
    ["a version that is not served", (text: string) => text.replace(/(apiVersion: .*\/).*/, "$1v9")],
    ["a value that is not valid", (text: string) => `${text}  operator: Exist\n`],
  ])("a policy with %s keeps its last good version, also beside another faulty one", async (_, broken) => {
    const files = (text: string, more = "") =>
      directory.write("a.yaml", `${more}${text.replace("hello", "welcome")}`);
    for (const more of ["", `${greetingYaml("two", "hello", "  operator: Exist\n")}---\n`]) {
      await directory.write("a.yaml", `${more}${greetingYaml("one", "hello")}`);
      const source = await directory.open();
      await files(broken(greetingYaml("one", "hello")), more);
      await source.refresh();
      expect(wordsOf(source)).toMatchObject({ one: "hello" });
      expect(directory.said()).toContain("still serving the last good version of this file");
      await files(greetingYaml("one", "hello"), more);
      await source.refresh();
      expect(wordsOf(source)).toMatchObject({ one: "welcome" });
    }
  });

  test("a file that becomes invalid keeps its last good version completely", async () => {
    await directory.write("policies.yaml", `${greetingYaml("one", "a")}---\n${greetingYaml("two", "a")}`);
    await directory.write("other.yaml", greetingYaml("three", "a"));
    const source = await directory.open();
    await directory.write(
      "policies.yaml",
      `${greetingYaml("one", "b")}---\n${greetingYaml("two", "a", "  operator: Exist\n")}`,
    );
    await directory.write("other.yaml", greetingYaml("three", "b"));
    await source.refresh();
    expect(wordsOf(source)).toEqual({ one: "a", two: "a", three: "b" });
    const said = directory.said();
    expect(said).toContain('policies.yaml:14:13: spec.operator: unsupported value "Exist": must be one of');
    expect(said).toContain("still serving the last good version of this file (2 policies)");
    expect(said).toContain("other.yaml: 1 policy changed (three)");
    expect(source.problems).toHaveLength(1);

    await source.refresh();
    expect(directory.said()).toBe("");

    await directory.write("policies.yaml", "kind: [\n");
    await source.refresh();
    expect(wordsOf(source)).toEqual({ one: "a", two: "a", three: "b" });
    expect(directory.said()).toContain("still serving the last good version of this file (2 policies)");

    await directory.write("policies.yaml", `${greetingYaml("one", "a")}---\n${greetingYaml("two", "a")}`);
    await source.refresh();
    expect(directory.said()).toBe("policies.yaml: read again without problems (2 policies)");
    expect(source.problems).toEqual([]);
  });

  test("a file that was invalid from the start is served in part, but loses no object to a new error", async () => {
    const bad = greetingYaml("bad", "a", "  operator: Exist\n");
    await directory.write("a.yaml", `${greetingYaml("one", "a")}---\n${bad}`);
    const source = await directory.open();
    await directory.write("a.yaml", `${greetingYaml("one", "b")}---\n${bad}---\n${greetingYaml("two", "a")}`);
    await source.refresh();
    expect(wordsOf(source)).toEqual({ one: "b", bad: "a", two: "a" });
    await directory.write(
      "a.yaml",
      `${greetingYaml("one", "c", "  operator: Exist\n")}---\n${greetingYaml("two", "c")}`,
    );
    await source.refresh();
    expect(wordsOf(source)).toEqual({ one: "b", bad: "a", two: "a" });
    await directory.write("a.yaml", `${bad}---\n${greetingYaml("two", "d")}`);
    await source.refresh();
    expect(wordsOf(source)).toEqual({ bad: "a", two: "d" });
  });

  test("a deleted file removes its objects", async () => {
    await directory.write("a.yaml", greetingYaml("one", "a"));
    await directory.write("sub/b.yaml", greetingYaml("two", "a"));
    const source = await directory.open();
    await rm(directory.at("sub"), { recursive: true });
    await source.refresh();
    expect(wordsOf(source)).toEqual({ one: "a" });
    expect(directory.said()).toBe("sub/b.yaml: 1 policy removed (two)");
  });

  test("a policy that moves to another file stays in force, without a change event", async () => {
    await directory.write("b.yaml", greetingYaml("one", "a"));
    const source = await directory.open();
    const before = [...source.assembly.policies("greeter")];
    await rename(directory.at("b.yaml"), directory.at("a.yaml"));
    await source.refresh();
    expect([...source.assembly.policies("greeter")]).toEqual(before);
    expect(source.problems).toEqual([]);
  });

  test("a file that becomes unreadable keeps its last content", async () => {
    await directory.write("a.yaml", greetingYaml("one", "a"));
    const source = await directory.open();
    await truncate(directory.at("a.yaml"), MAX_FILE_BYTES + 1);
    await source.refresh();
    expect(wordsOf(source)).toEqual({ one: "a" });
    expect(directory.said()).toBe(
      "a.yaml: is larger than 64 MiB; split it into several files\nstill serving the last good version of this file (1 policy)",
    );
  });

  test("a vanished directory keeps everything, and is reported once", async () => {
    await directory.write("in/a.yaml", greetingYaml("one", "a"));
    const source = await directory.open({ directory: directory.at("in") });
    await rename(directory.at("in"), directory.at("out"));
    await source.refresh();
    await source.refresh();
    expect(wordsOf(source)).toEqual({ one: "a" });
    expect(directory.said()).toBe(
      "in: does not exist; still serving what was read before"
        .replace("in:", `${directory.at("in")}:`)
        .replaceAll(`${directory.path}/`, ""),
    );
    await rename(directory.at("out"), directory.at("in"));
    await source.refresh();
    expect(source.problems).toEqual([]);
  });

  test("a list is compared item by item", async () => {
    const list = (words: readonly string[]): string =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "List",
        items: words.map((word, i) => ({
          apiVersion: "conformance.usher.dev/v1",
          kind: "Greeting",
          metadata: { name: `p${i}` },
          spec: { word },
        })),
      });
    await directory.write("a.json", list(["a", "b", "c"]));
    const source = await directory.open();
    await directory.write("a.json", list(["a", "B", "c"]));
    await source.refresh();
    expect(directory.said()).toBe("a.json: 1 policy changed (p1)");
    expect(wordsOf(source)).toEqual({ p0: "a", p1: "B", p2: "c" });
    await directory.write("a.json", list(["a"]));
    await source.refresh();
    expect(wordsOf(source)).toEqual({ p0: "a" });
  });

  test("a write in memory counts until a file changes the object", async () => {
    const map = (value: string): string =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ledger}\ndata: {v: "${value}"}\n`;
    await directory.write("a.yaml", map("1"));
    const source = await directory.open();
    const rests = { get: { resource: "configmaps", namespace: "default", name: "ledger" } };
    const deadline = { remaining: () => 1000, signal: new AbortController().signal };
    const read = async (): Promise<unknown> => (await source.fetch([rests], deadline))[0];
    expect(await read()).toMatchObject({ found: { data: { v: "1" }, metadata: { resourceVersion: "1" } } });
    const object = { apiVersion: "v1", kind: "ConfigMap", data: { v: "2" } };
    const commit = {
      resource: "configmaps",
      namespace: "default",
      name: "ledger",
      object,
      resourceVersion: "1",
      rests,
    };
    expect(await source.commit(commit, deadline)).toBe("done");
    await directory.write("b.yaml", NODE);
    await directory.write("a.yaml", `# the same\n${map("1")}`);
    await source.refresh();
    expect(await read()).toMatchObject({ found: { data: { v: "2" } } });
    await directory.write("a.yaml", map("3"));
    await source.refresh();
    expect(await read()).toMatchObject({ found: { data: { v: "3" } } });
    expect(await source.commit(commit, deadline)).toBe("conflict");
  });
});

describe("a large source", () => {
  const MANY = 1500;
  const text = (changed?: number, more = ""): string =>
    Array.from({ length: MANY }, (_, i) =>
      greetingYaml(`p${i}`, i === changed ? "changed" : "hello", i === changed ? more : ""),
    ).join("---\n");

  test("is read with progress, and a changed policy replaces no other", async () => {
    await directory.write("all.yaml", text());
    const steps: [number, number, string][] = [];
    const first = await directory.open();
    const source = await openFiles({
      directory: directory.path,
      assembly: first.assembly,
      report: (report) => directory.reports.push(report),
      watch: false,
      progress: (done, total, file) => steps.push([done, total, file]),
    });
    expect(source.summary.policies).toBe(MANY);
    expect(steps.length).toBeGreaterThan(10);
    expect(steps.at(-1)).toEqual([MANY, MANY, "all.yaml"]);
    const before = new Map(
      [...source.assembly.policies("greeter")].map((policy) => [policy.ref.name, policy]),
    );
    await directory.write("all.yaml", text(700));
    await source.refresh();
    expect(directory.said()).toBe("all.yaml: 1 policy changed (p700)");
    const after = [...source.assembly.policies("greeter")];
    expect(
      after.filter((policy) => before.get(policy.ref.name) !== policy).map(({ ref }) => ref.name),
    ).toEqual(["p700"]);
    await directory.write("all.yaml", text(700, "  operator: Exist\n"));
    await source.refresh();
    expect(directory.said()).toContain(`all.yaml:${700 * 7 + 7}:13: spec.operator`);
    expect(wordsOf(source)).toMatchObject({ p700: "changed", p701: "hello" });
    await source.stop();
  });
});
