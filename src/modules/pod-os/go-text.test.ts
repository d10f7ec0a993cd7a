import fc from "fast-check";
import { expect, test } from "vitest";
import { byCodePoint, goJson, goQuote, sortedSet } from "./go-text.ts";

test.each([
  ["", '""'],
  ['a"b\\', '"a\\"b\\\\"'],
  ["\u0007\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"'],
  ["\u0000\u001f\u007f", '"\\x00\\x1f\\x7f"'],
  ["\u0085\u00a0\u00ad\u200b\u2028\ufeff\ue000", '"\\u0085\\u00a0\\u00ad\\u200b\\u2028\\ufeff\\ue000"'],
  ["é\u0301😀�€", '"é\u0301😀�€"'],
  ["\u{10ffff}\u{f0000}", '"\\U0010ffff\\U000f0000"'],
  ["\ud800", '"\ufffd"'],
])("%j is quoted as %s", (text, quoted) => {
  expect(goQuote(text)).toBe(quoted);
});

test("JSON escapes characters with a meaning in HTML", () => {
  expect(goJson('<a href="&">\u2028')).toBe('"\\u003ca href=\\"\\u0026\\"\\u003e\\u2028"');
});

test("the order of code points is that of the bytes of UTF-8", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      expect(Math.sign(byCodePoint(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
  );
  expect(sortedSet(["\u{1f600}", "\uffee", "a", "a"])).toEqual(["a", "\uffee", "\u{1f600}"]);
});
