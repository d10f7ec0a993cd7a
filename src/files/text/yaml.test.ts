import v8 from "node:v8";
import { describe, expect, test, vi } from "vitest";
import { parseDocument } from "./documents.ts";
import { MAX_ALIASED_VALUES, MAX_DEPTH, parseYaml, TOO_DEEP } from "./yaml.ts";

function messages(text: string): string[] {
  return parseYaml(text).problems.map(({ message }) => message);
}

describe("the meaning of YAML", () => {
  test("quoted and block scalars are strings, plain ones are resolved", () => {
    const text = 'a: yes\nb: "yes"\nc: \'no\'\nd: |\n  1\ne: >-\n  2\nf:\ng: [1, "1", ~]\n';
    expect(parseYaml(text).value).toEqual({
      a: true,
      b: "yes",
      c: "no",
      d: "1\n",
      e: "2",
      f: null,
      g: [1, "1", null],
    });
  });

  test("non-string keys become strings", () => {
    expect(parseYaml("on: 1\n1: 2\n'1.0': 3\n").value).toEqual({ true: 1, "1": 2, "1.0": 3 });
  });

  test("an empty document has no value", () => {
    for (const text of ["", "# only a comment\n", "~\n", "\n\n"]) {
      expect(parseYaml(text)).toMatchObject({ value: undefined, problems: [] });
    }
  });

  test("CRLF and tabs after values change nothing", () => {
    expect(parseYaml("a: 1\r\nb:\r\n  - x\t\r\n").value).toEqual({ a: 1, b: ["x"] });
  });

  test("resolves aliases and merges", () => {
    const text =
      "base: &base {a: 1, b: 2}\nfirst:\n  <<: *base\n  b: 3\nlast:\n  b: 3\n  <<: *base\nz: *base\n";
    expect(parseYaml(text).value).toMatchObject({
      first: { a: 1, b: 3 },
      // As go-yaml 2: a later merge overwrites.
      last: { a: 1, b: 2 },
      z: { a: 1, b: 2 },
    });
    expect(parseYaml("p: &p {a: 1}\nq: &q {a: 2, b: 2}\nr:\n  <<: [*p, *q]\n").value).toMatchObject({
      r: { a: 1, b: 2 },
    });
  });

  test("a quoted << is an ordinary key", () => {
    expect(parseYaml('"<<": {a: 1}').value).toEqual({ "<<": { a: 1 } });
  });
});

describe("rejects", () => {
  test("a duplicate key, also if one is a boolean", () => {
    expect(messages("a: 1\nb: 2\na: 3\n")).toEqual(['duplicate key "a"']);
    expect(messages("yes: 1\n'true': 2\n")).toEqual(['duplicate key "true"']);
  });

  test("keys that JSON can't represent", () => {
    expect(messages("~: 1")).toEqual(["a key can't be null"]);
    expect(messages("? [a]\n: 1\n")).toEqual(["a key must be a string, not a map or a list"]);
  });

  test("numbers that JSON can't represent", () => {
    expect(messages("a: .nan\nb: -.inf\n")).toHaveLength(2);
  });

  test("merges of anything but a map, and unknown anchors", () => {
    expect(messages("a:\n  <<: 1\n")[0]).toContain("<< must be a map");
    expect(messages("a: *none\n")[0]).toContain("unknown alias *none");
    expect(messages("a: &a [*a]\n")[0]).toContain("unknown alias *a");
  });

  test("a tag that does not match the text", () => {
    expect(messages("a: !!int many\n")[0]).toContain("does not match its tag");
  });

  test("all syntax errors, each with its position", () => {
    const { problems } = parseYaml('a: "\\q"\nb: [1, 2\nc: 3\n');
    expect(problems.length).toBeGreaterThan(1);
    expect(problems[0]).toMatchObject({ start: 4 });
  });

  test("a second document without ---", () => {
    expect(messages("a: 1\n...\nb: 2\n")).toEqual(["second document without a --- separator"]);
    expect(messages("a: 1\n...\n")).toEqual([]);
  });
});

describe("hostile documents", () => {
  test("rejects a billion laughs", () => {
    const lines = ["a0: &a0 [x]"];
    for (let i = 1; i < 12; i++) {
      lines.push(`a${i}: &a${i} [${Array.from({ length: 10 }, () => `*a${i - 1}`).join(", ")}]`);
    }
    const read = parseYaml(lines.join("\n"));
    expect(read.value).toBeUndefined();
    expect(read.problems).toHaveLength(1);
    expect(read.problems[0]?.message).toContain(`more than ${MAX_ALIASED_VALUES} values`);
  });

  test("accepts a few aliases of a large value", () => {
    const items = Array.from({ length: 1000 }, (_, i) => i).join(", ");
    expect(parseYaml(`a: &a [${items}]\nb: [*a, *a, *a]\n`).problems).toEqual([]);
  });

  test.each([
    ["brackets", "[".repeat(MAX_DEPTH + 10) + "]".repeat(MAX_DEPTH + 10)],
    ["many brackets", "[".repeat(20_000)],
    ["dashes", "- ".repeat(20_000)],
    ["maps", Array.from({ length: MAX_DEPTH + 10 }, (_, i) => `${" ".repeat(i)}a:`).join("\n")],
  ])("rejects %s nested too deeply", (_, text) => {
    expect(messages(text)).toEqual([TOO_DEEP]);
  });

  test("accepts nesting up to the limit", () => {
    expect(messages("[".repeat(MAX_DEPTH) + "]".repeat(MAX_DEPTH))).toEqual([]);
  });

  test("__proto__ and constructor are ordinary keys", () => {
    const value = parseYaml("__proto__: {polluted: true}\nconstructor: 1\nm:\n  <<: {__proto__: 2}\n").value;
    expect(Object.keys(value as object)).toEqual(["__proto__", "constructor", "m"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(Object.keys((value as { m: object }).m)).toEqual(["__proto__"]);
  });

  test("rejects more values than fit into the memory", () => {
    const limit = vi.spyOn(v8, "getHeapStatistics");
    const { heap_size_limit: _, ...statistics } = v8.getHeapStatistics();
    limit.mockReturnValue({ ...statistics, heap_size_limit: 1024 * 1000 });
    try {
      expect(messages(`[${"a,".repeat(990)}]`)).toEqual([]);
      expect(messages(`[${"a,".repeat(1000)}]`)).toEqual([
        "one YAML document of more than 1000 values does not fit into the memory",
      ]);
      expect(messages(`a: ${"x".repeat(5000)}`)).toEqual([]);
      // JSON needs no tree: only positions and duplicate keys do.
      const list = JSON.stringify(Array.from({ length: 2000 }, (_, i) => i));
      expect(parseDocument(list).value).toHaveLength(2000);
      expect(parseDocument(list).locate([3])).toMatchObject({ exact: false, value: { start: 0 } });
      const twice = parseDocument(`{"a": ${list}, "a": 1}`);
      expect(twice).toMatchObject({ value: undefined, problems: [{ message: "has a duplicate key" }] });
    } finally {
      limit.mockRestore();
    }
  });

  test("accepts a scalar of ten megabytes", () => {
    const value = parseYaml(`a: ${"x".repeat(10_000_000)}\n`).value as { a: string };
    expect(value.a).toHaveLength(10_000_000);
  });
});

describe("positions", () => {
  const text = "metadata:\n  name: web\n  1: x\nspec:\n  list:\n  - a: Exist\n  empty:\n";
  const { locate } = parseYaml(text);
  const shown = (path: (string | number)[]) => {
    const { key, value, exact } = locate(path);
    const cut = (span: { start: number; end: number } | undefined) =>
      span && text.slice(span.start, span.end);
    return { key: cut(key), value: cut(value), exact };
  };

  test("of a value and its key", () => {
    expect(shown(["metadata", "name"])).toEqual({ key: "name", value: "web", exact: true });
    expect(shown(["spec", "list", 0, "a"])).toEqual({ key: "a", value: "Exist", exact: true });
    expect(shown(["metadata", "1"])).toEqual({ key: "1", value: "x", exact: true });
  });

  test("of a missing value: its nearest ancestor", () => {
    expect(shown(["metadata", "labels", "app"])).toMatchObject({ key: "metadata", exact: false });
    expect(shown(["spec", "list", 7])).toMatchObject({ key: "list", exact: false });
  });
});

describe("syntax errors", () => {
  test.each([
    ["hello: [world\n", "]"],
    ["a: { b: 1\nc: 2\n", "}"],
  ])("a bracket that is not closed is named with the missing one: %j", (text, bracket) => {
    const [first] = parseYaml(text).problems;
    expect(first).toMatchObject({
      message: "a bracket is not closed",
      hint: `end it with ${bracket}, and indent its lines`,
    });
  });
});

test("the position of a whole document is its first content, not a comment above", () => {
  const text = "# schema\n\n  # more\nkind: Pod\n";
  expect(parseYaml(text).locate([]).value.start).toBe(text.indexOf("kind"));
  expect(parseYaml("# only\n").locate([]).value.start).toBe(0);
});
