import fc from "fast-check";
import { expect, test } from "vitest";
import { NESTING_LIMIT, structureProblem, VALUES_LIMIT } from "./structure.ts";

const problem = (text: string) => structureProblem(Buffer.from(text));
const DEEP = "the body is nested deeper than 1000 levels";
const DENSE = "the body has more than 250000 values";

const nested = (levels: number, open = "[", close = "]") => open.repeat(levels) + close.repeat(levels);

test.each([
  ["lists at the limit", nested(NESTING_LIMIT), undefined],
  ["one list more", nested(NESTING_LIMIT + 1), DEEP],
  ["objects at the limit", `${nested(NESTING_LIMIT, '{"a":', "}")}`, undefined],
  ["one object more", nested(NESTING_LIMIT + 1, '{"a":', "}"), DEEP],
  ["brackets in a text", `"${"[".repeat(10_000)}\\"${"[".repeat(10_000)}"`, undefined],
  ["many lists beside each other", `[${"[],".repeat(10_000)}1]`, undefined],
  ["objects at the limit of values", `[${"{},".repeat(VALUES_LIMIT / 2 - 1)}{}]`, undefined],
  ["one object more", `[${"{},".repeat(VALUES_LIMIT / 2)}{}]`, DENSE],
  ["numbers above the limit", `[${"1,".repeat(VALUES_LIMIT)}1]`, DENSE],
  ["members above the limit", `{${'"a":1,'.repeat(VALUES_LIMIT)}"b":1}`, DENSE],
  ["commas in a text", `"${",{".repeat(VALUES_LIMIT)}"`, undefined],
])("%s", (_, text, expected) => {
  expect(problem(text)).toBe(expected);
});

test("no text makes it throw, and no JSON of a usual size is refused", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 2_000, maxLength: 4_000 }), (bytes) => {
      structureProblem(bytes);
    }),
  );
  fc.assert(fc.property(fc.json(), (text) => problem(text.padEnd(3_000)) === undefined));
});
