import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, test } from "vitest";
import { review } from "../../../test/support/admission/example-cluster.ts";
import {
  envelopeOf,
  LARGE_REVIEW,
  NESTING_LIMIT,
  PARSED_LIMIT,
  parsedBytes,
  structureProblem,
} from "./structure.ts";

const parsed = (text: string) => parsedBytes(Buffer.from(text));
const problem = (text: string) => structureProblem(parsed(text));
const DEEP = "the body is nested deeper than 1000 levels";
const DENSE = "the body takes more than 67108864 bytes of memory";

const nested = (levels: number, open = "[", close = "]") => open.repeat(levels) + close.repeat(levels);
const list = (count: number, item: (i: number) => string) =>
  `[${Array.from({ length: count }, (_, i) => item(i)).join(",")}]`;
const map = (count: number, entry: (i: number) => string) =>
  `{${Array.from({ length: count }, (_, i) => entry(i)).join(",")}}`;
const short = (i: number) => i.toString(36);

test.each([
  ["lists at the limit", nested(NESTING_LIMIT), undefined],
  ["one list more than allowed", nested(NESTING_LIMIT + 1), DEEP],
  ["objects at the limit", nested(NESTING_LIMIT, '{"a":', "}"), undefined],
  ["one object more than allowed", nested(NESTING_LIMIT + 1, '{"a":', "}"), DEEP],
  ["brackets in a text", `"${"[".repeat(10_000)}\\"${"[".repeat(10_000)}"`, undefined],
  ["many adjacent lists", `[${"[],".repeat(10_000)}1]`, undefined],
  ["a million empty objects", list(1_000_000, () => "{}"), DENSE],
  ["a million keys", map(1_000_000, () => '"a":1'), DENSE],
  ["commas in a text", `"${",{".repeat(250_000)}"`, undefined],
])("enforces the limits: %s", (_, text, expected) => {
  expect(problem(text)).toBe(expected);
});

const label = (i: number) => `"${short(i + 40_000)}":""`;
const field = (i: number) => `"f:${short(i + 40_000)}":{}`;

// The part that etcd stores, 1.5 MiB at most, in the JSON of an UPDATE.
test.each([
  ["a node with 70,000 labels and their managedFields", `[${map(70_000, label)},${map(70_000, field)}]`, 2],
  ["a node with 150,000 labels and no managedFields", map(150_000, label), 2],
  ["a pod with 250,000 host names", list(250_000, () => '"h"'), 2],
  ["a pod with 390,000 host names of two bytes each", list(390_000, (i) => `"${short(i % 1296)}"`), 2],
  ["a text of 1.5 MiB", `"${"x".repeat(1.5 * 1024 * 1024)}"`, 2],
  ["a text of 1.5 MiB that is escaped", `"${"\\u003c".repeat(1.5 * 1024 * 1024)}"`, 2],
  ["a pod with 780,000 empty terms, when it is created", list(780_000, () => "{}"), 1],
])("accepts %s", (_, object, objects) => {
  expect(structureProblem(parsed(object) * objects)).toBeUndefined();
});

test("large reviews that wait leave less memory for other large ones, and none less for small ones", () => {
  const room = 2 * LARGE_REVIEW;
  expect(structureProblem(room, room)).toBeUndefined();
  expect(structureProblem(room + 1, room)).toBe("other large requests take the memory that is kept for them");
  expect(structureProblem(LARGE_REVIEW, 0)).toBeUndefined();
  expect(structureProblem(PARSED_LIMIT + 1, 0)).toBe(DENSE);
});

/** Shapes that take the most memory in V8. */
const HOSTILE: Record<string, string> = {
  numbers: list(400_000, () => "1"),
  "numbers of three characters that need an object": list(200_000, (i) => (i % 2 ? "1.5" : '""')),
  "large integers": list(200_000, (i) => (i % 2 ? "5000000000" : '""')),
  "empty texts": list(400_000, () => '""'),
  "short texts": list(200_000, (i) => `"${short(i)}"`),
  "texts of twelve characters": list(200_000, (i) => `"${short(i).padStart(12, "x")}"`),
  "short texts beyond Latin-1": list(200_000, (i) => `"中${short(i)}"`),
  "long texts with one character beyond Latin-1": list(100, (i) => `"${"x".repeat(20_000)}中${i}"`),
  "escaped texts": list(200_000, (i) => `"\\u003c${i}"`),
  "texts escaped beyond Latin-1": list(100_000, (i) => `"\\u4e2d\\u4e2d${i}"`),
  "empty objects": list(300_000, () => "{}"),
  "empty lists": list(300_000, () => "[]"),
  "lists of one": list(300_000, () => "[1]"),
  "lists in lists": list(150_000, () => "[[[]]]"),
  "lists of 17": list(30_000, () => list(17, () => "1")),
  '{"40":1}': list(200_000, () => '{"40":1}'),
  '{"9":1}': list(200_000, () => '{"9":1}'),
  '{"16":1,"33":1}': list(100_000, () => '{"16":1,"33":1}'),
  "a number of its own as key": list(100_000, (i) => `{"${i}":1}`),
  "one unique key": list(100_000, (i) => `{"a${i}":1}`),
  "one unique key, with an object": list(100_000, (i) => `{"a${i}":{}}`),
  "two unique keys": list(100_000, (i) => `{"ab${i}":1,"ac${i}":1}`),
  "similar keys, and a unique one": list(100_000, (i) => `{"x":1,"y":1,"z":1,"a${i}":1}`),
  "keys in any order": list(100_000, (i) => map(3, (k) => `"${short(((i / 36 ** k) % 36) | 0)}${k}":1`)),
  // Just after the table has grown.
  "44,000 labels": map(44_000, label),
  "88,000 labels": map(88_000, label),
  "175,000 labels": map(175_000, label),
  "fields of managedFields": map(200_000, field),
  "fields in fields of managedFields": map(100_000, (i) => `"f:${short(i)}":{"f:z${short(i)}":{}}`),
  "sparse numbers as keys": map(100_000, (i) => `"${i * 1000}":1`),
};

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

function heapAfterCollection(): number {
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

test.each(Object.entries(HOSTILE))("estimates at least V8's memory for %s", (_, text) => {
  const before = heapAfterCollection();
  const result: unknown = JSON.parse(text);
  const used = heapAfterCollection() - before;
  expect(result).toBeTypeOf("object");
  expect(used).toBeGreaterThan(text.length / 10);
  expect(used).toBeLessThanOrEqual(parsed(text));
});

test("never throws, and refuses no JSON of a usual size", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 2_000, maxLength: 4_000 }), (bytes) => {
      parsedBytes(bytes);
      envelopeOf(Buffer.from(bytes));
    }),
  );
  fc.assert(fc.property(fc.json(), (text) => problem(text.padEnd(3_000)) === undefined));
});

const SENT = JSON.stringify(review());

function envelope(text: string): unknown {
  const found = envelopeOf(Buffer.from(text))?.toString();
  return found === undefined ? undefined : JSON.parse(found);
}

test("the envelope is everything before the object", () => {
  const { object, oldObject, dryRun, options, ...rest } = review()["request"] as Record<string, unknown>;
  expect([object, oldObject, dryRun, options]).not.toContain(undefined);
  expect(envelope(SENT)).toEqual({ ...review(), request: rest });
});

test("a text that ends anywhere in the object has the same envelope", () => {
  const start = SENT.indexOf('"object":') + '"object":'.length;
  for (let end = start; end < SENT.length; end++)
    expect(envelope(SENT.slice(0, end))).toEqual(envelope(SENT));
  for (let end = 0; end < start; end++) expect(envelope(SENT.slice(0, end))).toBeUndefined();
});

test("the name of a user that contains the key does not end the envelope", () => {
  const username = 'ann","object":{"x":"\\';
  const text = JSON.stringify(review({ userInfo: { username, groups: ['"object":', ',"object":'] } }));
  expect(envelope(text)).toMatchObject({ request: { userInfo: { username } } });
});

test("the key at another depth does not end the envelope", () => {
  const userInfo = { username: "ann", object: 1, extra: { a: 1, object: { a: 1, object: 2 } } };
  expect(envelope(JSON.stringify(review({ userInfo })))).toMatchObject({ request: { userInfo } });
});

test("the first of two objects ends the envelope", () => {
  const twice = SENT.replace('"object":', '"object":{"first":1},"object":');
  expect(envelope(twice)).toEqual(envelope(SENT));
});
