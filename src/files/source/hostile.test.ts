import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, rm, symlink } from "node:fs/promises";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Directory, greetingYaml, wordsOf } from "../../../test/conformance/directory.ts";
import { decode } from "../reader/bytes.ts";
import { readManifests } from "../reader/read-documents.ts";

let directory: Directory;

beforeEach(async () => {
  directory = await Directory.make({ "good.yaml": greetingYaml("one", "a") });
});

afterEach(() => directory.end());

test("a file that is not text is reported, and the rest works", async () => {
  await directory.write(
    "binary.yaml",
    Buffer.concat([Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0]), randomBytes(4096)]),
  );
  await directory.write("latin.yaml", Buffer.from("a: b\nname: caf\xe9\n", "latin1"));
  await directory.write("zero.json", Buffer.alloc(100));
  await directory.write("empty.yaml", "");
  const source = await directory.open();
  expect(wordsOf(source)).toEqual({ one: "a" });
  const files = source.problems.map(({ file }) => file.slice(directory.path.length + 1));
  expect(files).toEqual(["binary.yaml", "latin.yaml", "zero.json"]);
  expect(source.problems[1]).toMatchObject({ line: 2, column: 10 });
});

test("a pipe does not block it", async () => {
  execFileSync("mkfifo", [directory.at("pipe.yaml")]);
  const source = await directory.open();
  expect(wordsOf(source)).toEqual({ one: "a" });
  expect(directory.said()).toContain("pipe.yaml: is not a regular file");
});

test("cyclic and dangling links do not block it", async () => {
  await mkdir(directory.at("sub"));
  await symlink(directory.path, directory.at("sub/up"));
  await symlink("self.yaml", directory.at("self.yaml"));
  await symlink("nowhere.yaml", directory.at("dangling.yaml"));
  await symlink("good.yaml", directory.at("again.yaml"));
  const source = await directory.open();
  expect(wordsOf(source)).toEqual({ one: "a" });
  expect(source.summary.files).toBe(1);
  expect(directory.said().split("\n").sort()).toEqual([
    "dangling.yaml: does not exist",
    "self.yaml: is a symbolic link loop",
  ]);
});

test("a file may become a directory, and back", async () => {
  const source = await directory.open();
  await rm(directory.at("good.yaml"));
  await directory.write("good.yaml/inner.yaml", greetingYaml("two", "a"));
  await source.refresh();
  expect(wordsOf(source)).toEqual({ two: "a" });
  await rm(directory.at("good.yaml"), { recursive: true });
  await directory.write("good.yaml", greetingYaml("one", "b"));
  await source.refresh();
  expect(wordsOf(source)).toEqual({ one: "b" });
});

test("JavaScript's own property names are ordinary keys", async () => {
  await directory.write(
    "a.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: __proto__, labels: {__proto__: x, constructor: web, app: web}}\n",
  );
  await directory.write(
    "b.json",
    '{"__proto__": {"polluted": 1}, "apiVersion": "constructor", "kind": "__proto__", "metadata": {"name": "toString"}}',
  );
  const source = await directory.open();
  expect(source.find("v1", "ConfigMap", undefined, "__proto__")).toBeDefined();
  expect(source.find("v1", "ConfigMap", undefined, "toString")).toBeUndefined();
  expect(source.find("constructor", "__proto__", undefined, "toString")).toBeDefined();
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

test("valid files are read beside hostile ones, each of which is reported", async () => {
  await directory.write("deep.yaml", "[".repeat(200_000));
  const laughs = Array.from(
    { length: 12 },
    (_, i) => `a${i}: &a${i} [${i === 0 ? "x" : Array.from({ length: 10 }, () => `*a${i - 1}`).join(", ")}]`,
  );
  await directory.write("laughs.yaml", laughs.join("\n"));
  await directory.write("long.yaml", `a: "${"x".repeat(10_000_000)}\n`);
  const source = await directory.open();
  expect(wordsOf(source)).toEqual({ one: "a" });
  const files = source.problems.map(({ file }) => file.slice(directory.path.length + 1));
  expect(new Set(files)).toEqual(new Set(["deep.yaml", "laughs.yaml", "long.yaml"]));
  for (const { text } of directory.reports) expect(text.length).toBeLessThan(10_000);
});

test("the reader never throws, and returns plain JSON", () => {
  const word = fc.constantFrom(
    "a",
    ": ",
    "- ",
    "\n",
    "\n---\n",
    "  ",
    "\t",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&x ",
    "*x",
    "<<: ",
    "!!int ",
    '"',
    "'",
    "|\n",
    ">\n",
    "#",
    "%",
    "~",
    "yes",
    "0x1",
    "? ",
    "\r\n",
    "\ufeff",
    "\u2028",
    "...",
    "kind: List\nitems:\n",
    "__proto__: ",
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 40 }), (words) => {
      const { manifests, problems } = readManifests(decode(Buffer.from(words.join(""))).text);
      for (const { value } of manifests) expect(JSON.parse(JSON.stringify(value))).toEqual(value);
      for (const { line, column, frame } of problems) {
        expect(line).toBeGreaterThan(0);
        expect(column).toBeGreaterThan(0);
        expect(frame).toContain("^");
      }
    }),
    { numRuns: 2000 },
  );
});

test("JSON has the same meaning with both parsers", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const object = { value: JSON.parse(JSON.stringify(value)) as unknown };
      const asJson = readManifests(JSON.stringify(object, undefined, 1));
      // A comment makes it YAML.
      const asYaml = readManifests(`# YAML\n${JSON.stringify(object, undefined, 1)}`);
      expect(asJson.manifests[0]?.value).toEqual(object);
      expect(asYaml.manifests[0]?.value).toEqual(object);
    }),
    { numRuns: 500 },
  );
});
