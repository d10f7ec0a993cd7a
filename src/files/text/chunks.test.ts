import { describe, expect, test } from "vitest";
import { decode } from "../reader/bytes.ts";
import { cutChunks, parseChunk } from "./chunks.ts";

function values(text: string): unknown[] {
  return cutChunks(text).chunks.map((chunk) => parseChunk(chunk).value);
}

describe("cutting a file into documents", () => {
  test("by lines of ---, also at the start, the end and in a row", () => {
    expect(values("---\na: 1\n---\n---\n# nothing\n---  # two\nb: 2\n---\n")).toEqual([
      { a: 1 },
      undefined,
      { b: 2 },
    ]);
    expect(values("a: 1\r\n---\r\nb: 2\r\n")).toEqual([{ a: 1 }, { b: 2 }]);
    expect(values("a: 1\n---")).toEqual([{ a: 1 }]);
    expect(values("")).toEqual([]);
  });

  test("each document knows where it begins", () => {
    const text = "a: 1\n---\nb: 2\n";
    for (const { text: part, offset } of cutChunks(text).chunks) {
      expect(text.slice(offset, offset + part.length)).toBe(part);
    }
  });

  test("what stands behind --- is refused, as kubectl refuses it", () => {
    const { problems } = cutChunks("a: 1\n--- {b: 2}\n");
    expect(problems).toMatchObject([{ start: 8, message: "only a comment may follow --- on its line" }]);
  });

  test("--- inside a text that is indented is text", () => {
    expect(values("a: |\n  ---\n  b\n")).toEqual([{ a: "---\nb\n" }]);
  });
});

describe("JSON", () => {
  test("one text, and several one after the other", () => {
    expect(values('{"a": "yes",\n\t"b": 010000000000000000000}'.replace("010", "10"))).toEqual([
      { a: "yes", b: 1e19 },
    ]);
    expect(values('{"a": 1}\n{"b": [2, {"c": "}"}]} {"d": "\\"}{"}')).toEqual([
      { a: 1 },
      { b: [2, { c: "}" }] },
      { d: '"}{' },
    ]);
  });

  test("flow style that is no JSON is read as YAML", () => {
    expect(values("{a: yes, b: [x]}")).toEqual([{ a: true, b: ["x"] }]);
    expect(values("{a: 1}\n---\n{b: 2}")).toEqual([{ a: 1 }, { b: 2 }]);
  });

  test("duplicate keys are found, and only those", () => {
    const read = parseChunk({ text: '{"a": 1, "b": {"a": 2}, "\\u0061": 3}' });
    expect(read.value).toBeUndefined();
    expect(read.problems).toMatchObject([{ message: 'duplicate key "a"', start: 24 }]);
    expect(parseChunk({ text: '{"a": {"a": 1}, "b": ["a", "a"]}' }).problems).toEqual([]);
  });

  test("deep nesting is refused", () => {
    expect(parseChunk({ text: "[".repeat(5000) + "]".repeat(5000) }).problems).toHaveLength(1);
  });

  test("a text of ten megabytes is fine", () => {
    expect(parseChunk({ text: JSON.stringify({ a: '\\"'.repeat(5_000_000) }) }).problems).toEqual([]);
  });

  test("places", () => {
    const text = '{"a": {"b": ["x", {"c": "Exist"}]}, "d": 1}';
    const { locate } = parseChunk({ text });
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
});

describe("bytes", () => {
  test("a byte order mark is no part of the text", () => {
    expect(decode(Buffer.from("\ufeffa: 1\n"))).toEqual({ text: "a: 1\n", problems: [] });
  });

  test("bytes that are no UTF-8 are found", () => {
    const { problems } = decode(Buffer.concat([Buffer.from("a: ä"), Buffer.from([0xff]), Buffer.from("\n")]));
    expect(problems).toMatchObject([{ start: 4, message: "invalid UTF-8" }]);
  });

  test("UTF-16 is named", () => {
    expect(decode(Buffer.from("\ufeffa: 1\n", "utf16le")).problems[0]?.message).toContain("UTF-16");
  });

  test("control characters are found", () => {
    expect(decode(Buffer.from("a: \u0000\n")).problems).toMatchObject([{ start: 3 }]);
    expect(decode(Buffer.from("a:\tb\r\n")).problems).toEqual([]);
  });
});
