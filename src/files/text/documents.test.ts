import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import { decode } from "../reader/bytes.ts";
import { cutDocuments, parseDocument } from "./documents.ts";

function* pathsOf(value: Json, path: Path = []): Iterable<[Path, Json]> {
  yield [path, value];
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value))
    yield* pathsOf(inner as Json, [...path, Array.isArray(value) ? Number(key) : key]);
}

function values(text: string): unknown[] {
  return cutDocuments(text).chunks.map((chunk) => parseDocument(chunk.text).value);
}

describe("cutting a file into documents", () => {
  test("cuts at lines of ---, also at the start, the end and repeated", () => {
    expect(values("---\na: 1\n---\n---\n# nothing\n---  # two\nb: 2\n---\n")).toEqual([
      { a: 1 },
      undefined,
      { b: 2 },
    ]);
    expect(values("a: 1\r\n---\r\nb: 2\r\n")).toEqual([{ a: 1 }, { b: 2 }]);
    expect(values("a: 1\n---")).toEqual([{ a: 1 }]);
    expect(values("")).toEqual([]);
  });

  test("each document knows its offset", () => {
    const text = "a: 1\n---\nb: 2\n";
    for (const { text: part, offset } of cutDocuments(text).chunks) {
      expect(text.slice(offset, offset + part.length)).toBe(part);
    }
  });

  test("rejects text behind ---, as kubectl does", () => {
    const { problems } = cutDocuments("a: 1\n--- {b: 2}\n");
    expect(problems).toMatchObject([{ start: 8, message: "only a comment may follow --- on its line" }]);
  });

  test("--- inside an indented text is text", () => {
    expect(values("a: |\n  ---\n  b\n")).toEqual([{ a: "---\nb\n" }]);
  });
});

describe("JSON", () => {
  test("reads one text, and several in sequence", () => {
    expect(values('{"a": "yes",\n\t"b": 010000000000000000000}'.replace("010", "10"))).toEqual([
      { a: "yes", b: 1e19 },
    ]);
    expect(values('{"a": 1}\n{"b": [2, {"c": "}"}]} {"d": "\\"}{"}')).toEqual([
      { a: 1 },
      { b: [2, { c: "}" }] },
      { d: '"}{' },
    ]);
  });

  test("reads flow style that is not JSON as YAML", () => {
    expect(values("{a: yes, b: [x]}")).toEqual([{ a: true, b: ["x"] }]);
    expect(values("{a: 1}\n---\n{b: 2}")).toEqual([{ a: 1 }, { b: 2 }]);
  });

  test("finds exactly the duplicate keys", () => {
    const read = parseDocument('{"a": 1, "b": {"a": 2}, "\\u0061": 3}');
    expect(read.value).toBeUndefined();
    expect(read.problems).toMatchObject([{ message: 'duplicate key "a"', start: 24 }]);
    expect(parseDocument('{"a": {"a": 1}, "b": ["a", "a"]}').problems).toEqual([]);
  });

  test("finds a duplicate key at any depth, among any strings", () => {
    const text = fc.string({ unit: fc.constantFrom("a", '"', "\\", "u0022", "{", "}", ":", ",") });
    const written = fc.constantFrom(
      (value: unknown) => JSON.stringify(value),
      (value: unknown) =>
        JSON.stringify(value).replace(/\\(.)/g, (all, one) => (one === '"' ? "\\u0022" : all)),
    );
    fc.assert(
      fc.property(fc.dictionary(text, fc.array(text)), text, text, written, (rest, key, value, write) => {
        const inside = write({ ...rest, [key]: value });
        const { problems: none, value: read } = parseDocument(`[${inside}]`);
        expect(none).toEqual([]);
        expect(read).toEqual([{ ...rest, [key]: value }]);
        const twice = `[${inside.slice(0, -1)},${write(key)}: 1}]`;
        const { problems } = parseDocument(twice);
        expect(problems.map(({ message }) => message)).toEqual([`duplicate key ${JSON.stringify(key)}`]);
      }),
    );
  });

  test("reads a number beyond 64 bits as a string, as kubectl does in YAML", () => {
    expect(values('{"a": 1e400}')).toEqual([{ a: "1e400" }]);
  });

  test("rejects a stream that ends within a text", () => {
    const [first] = cutDocuments('{"a": 1}\n{"b": ').chunks;
    expect(parseDocument(first?.text ?? "").problems.length).toBeGreaterThan(0);
  });

  test("rejects deep nesting", () => {
    expect(parseDocument("[".repeat(5000) + "]".repeat(5000)).problems).toHaveLength(1);
  });

  test("reads a text of ten megabytes", () => {
    expect(parseDocument(JSON.stringify({ a: '\\"'.repeat(5_000_000) })).problems).toEqual([]);
  });

  test("positions", () => {
    const text = '{"a": {"b": ["x", {"c": "Exist"}]}, "d": 1}';
    const { locate } = parseDocument(text);
    const { key, value, exact } = locate(["a", "b", 1, "c"]);
    expect(text.slice(value.start, value.end)).toBe('"Exist"');
    expect(text.slice(key?.start, key?.end)).toBe('"c"');
    expect(exact).toBe(true);
    const d = locate(["d"]);
    expect(text.slice(d.value.start, d.value.end)).toBe("1");
    const missing = locate(["a", "z"]);
    expect(missing.exact).toBe(false);
    expect(text.slice(missing.key?.start, missing.key?.end)).toBe('"a"');
  });

  test("locates every value and its key", () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), fc.constantFrom(0, 2), (generated, indent) => {
        const text = `\n ${JSON.stringify([generated], null, indent)} \n`;
        const value = JSON.parse(text) as Json;
        const document = parseDocument(text);
        for (const [path, inner] of pathsOf(value)) {
          const place = document.locate(path);
          expect(place?.exact).toBe(true);
          expect(JSON.parse(text.slice(place?.value.start, place?.value.end))).toEqual(inner);
          const last = path.at(-1);
          if (typeof last === "string")
            expect(JSON.parse(text.slice(place?.key?.start, place?.key?.end))).toBe(last);
          else expect(place?.key).toBeUndefined();
        }
      }),
    );
  });

  test("locates an absent value at its nearest ancestor", () => {
    const text = '{"spec": {"containers": [{"name": "a"}]}}';
    const document = parseDocument(text);
    expect(document.locate(["spec", "containers", 3, "name"])).toEqual({
      key: { start: 10, end: 22 },
      value: { start: 24, end: 25 },
      exact: false,
    });
    expect(document.locate(["toString"])).toEqual({
      key: undefined,
      value: { start: 0, end: 1 },
      exact: false,
    });
  });
});

describe("bytes", () => {
  test("drops a byte order mark", () => {
    expect(decode(Buffer.from("\ufeffa: 1\n"))).toEqual({ text: "a: 1\n", problems: [] });
  });

  test("reports bytes that are not UTF-8", () => {
    const { problems } = decode(Buffer.concat([Buffer.from("a: ä"), Buffer.from([0xff]), Buffer.from("\n")]));
    expect(problems).toMatchObject([{ start: 4, message: "invalid UTF-8" }]);
  });

  test("reports UTF-16", () => {
    expect(decode(Buffer.from("\ufeffa: 1\n", "utf16le")).problems[0]?.message).toContain("UTF-16");
  });

  test("reports control characters", () => {
    expect(decode(Buffer.from("a: \u0000\n")).problems).toMatchObject([{ start: 3 }]);
    expect(decode(Buffer.from("a:\tb\r\n")).problems).toEqual([]);
  });
});
