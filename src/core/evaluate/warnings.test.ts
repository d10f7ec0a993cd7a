import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ModuleFinding } from "../decision/finding.ts";
import { printable, SERVER_WARNINGS_LIMIT, WARNING_LENGTH, WARNINGS_LIMIT, warningsOf } from "./warnings.ts";

const warning = (message: string, warn = 50, code?: string): ModuleFinding => ({
  module: "m",
  rule: "r",
  outcome: "skipped",
  message,
  warn,
  ...(code === undefined ? {} : { code }),
});

test("a finding may have a shorter warning than its message", () => {
  expect(warningsOf([{ ...warning("the whole story", 50, "USHER-P01"), warning: "brief" }])).toEqual([
    "brief (USHER-P01)",
  ]);
});

const lengthOf = (texts: readonly string[]) => texts.reduce((sum, text) => sum + text.length, 0);

test("the limits are those of the documents", () => {
  expect([WARNINGS_LIMIT, WARNING_LENGTH, SERVER_WARNINGS_LIMIT]).toEqual([2_000, 256, 4_096]);
});

test("the higher rank first, equals in their order, each once, with its code", () => {
  const found = [
    warning("low", 10),
    warning("first", 50, "USHER-P01"),
    warning("high", 90),
    warning("second", 50),
    warning("high", 20),
  ];
  const { warn: _warn, ...silent } = warning("silent");
  expect(warningsOf([...found, silent])).toEqual(["high", "first (USHER-P01)", "second", "low"]);
});

test("the findings themselves are not put into another order", () => {
  const found = [warning("a", 1), warning("b", 2)];
  warningsOf(found);
  expect(found.map(({ message }) => message)).toEqual(["a", "b"]);
});

describe("all together", () => {
  const texts = (count: number, length: number) =>
    Array.from({ length: count }, (_, i) => warning(String(i).padStart(length, "x")));

  test("exactly the limit fits", () => {
    const shown = warningsOf(texts(8, 250));
    expect(shown).toHaveLength(8);
    expect(lengthOf(shown)).toBe(WARNINGS_LIMIT);
  });

  test("with one more, the last line counts the omitted ones, within the limit", () => {
    const shown = warningsOf([...texts(8, 250), warning("y")]);
    expect(shown).toHaveLength(8);
    expect(shown.at(-1)).toBe("and 2 more warnings");
    expect(lengthOf(shown)).toBeLessThanOrEqual(WARNINGS_LIMIT);
  });

  test("one left out is one warning", () => {
    const shown = warningsOf([...texts(7, 250), warning("a".repeat(200)), warning("b".repeat(100))]);
    expect(shown.at(-1)).toBe("and 1 more warning");
    expect(shown).toHaveLength(9);
  });

  test("keeps the limit for thousands of warnings", () => {
    const shown = warningsOf(texts(5_000, 40));
    expect(lengthOf(shown)).toBeLessThanOrEqual(WARNINGS_LIMIT);
    expect(shown.at(-1)).toBe(`and ${5_000 - (shown.length - 1)} more warnings`);
    // As many as fit: another one would not have.
    expect(lengthOf(shown) + 40).toBeGreaterThan(WARNINGS_LIMIT);
  });

  test("any strings: within the limit, none lost without being counted, none omitted for a lower-ranked one", () => {
    const one = fc.record({ message: fc.string({ unit: "binary", maxLength: 400 }), warn: fc.nat(3) });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 30 }), (list) => {
        const findings = list.map(({ message, warn }) => warning(message, warn));
        const shown = warningsOf(findings);
        expect(lengthOf(shown)).toBeLessThanOrEqual(WARNINGS_LIMIT);
        for (const text of shown) {
          expect(text.length).toBeLessThanOrEqual(WARNING_LENGTH);
          expect(text).not.toMatch(/\p{Cc}/u);
          expect(text.isWellFormed()).toBe(true);
        }
        const sorted = list.toSorted((a, b) => b.warn - a.warn).map(({ message }) => printable(message));
        const distinct = [...new Set(sorted)];
        const rest = distinct.length - shown.length;
        if (rest <= 0 && shown.join() === distinct.join()) return;
        const left = distinct.length - (shown.length - 1);
        expect(shown).toEqual([
          ...distinct.slice(0, shown.length - 1),
          `and ${left} more ${left === 1 ? "warning" : "warnings"}`,
        ]);
      }),
      { numRuns: 200 },
    );
  });
});

describe("verbatim", () => {
  const verbatim = (message: string, warn = 50): ModuleFinding => ({
    ...warning(message, warn, "USHER-S01"),
    verbatim: true,
  });
  const upstream = `would violate PodSecurity "restricted:latest": ${"x".repeat(406)}`;

  test("a string longer than 256 characters stays whole, without a code", () => {
    expect(upstream).toHaveLength(453);
    expect(warningsOf([verbatim(upstream)])).toEqual([upstream]);
  });

  test("lesser ones are left out whole before anything is cut", () => {
    const long = (i: number) => String(i).repeat(1_000);
    const found = [warning("a".repeat(300), 10), ...[1, 2, 3, 4, 5].map((i) => verbatim(long(i), 60 - i))];
    expect(warningsOf(found)).toEqual([long(1), long(2), long(3), long(4), "and 2 more warnings"]);
  });

  test("a string that alone exceeds the API server's limit is cut as by the API server", () => {
    expect(warningsOf([verbatim("y".repeat(5_000))])).toEqual([`${"y".repeat(255)}…`]);
  });

  test("any strings: within the API server's limit, verbatim ones whole", () => {
    const one = fc.record({ length: fc.nat(2_500), warn: fc.nat(3), whole: fc.boolean() });
    fc.assert(
      fc.property(fc.array(one, { maxLength: 12 }), (list) => {
        const texts = list.map(({ length }, i) => `${i} ${"z".repeat(length)}`);
        const shown = warningsOf(
          list.map(({ warn, whole }, i) => (whole ? verbatim : warning)(texts[i] ?? "", warn)),
        );
        expect(lengthOf(shown)).toBeLessThanOrEqual(SERVER_WARNINGS_LIMIT);
        for (const text of shown)
          if (text.length > WARNING_LENGTH) expect(list[texts.indexOf(text)]?.whole).toBe(true);
      }),
    );
  });
});

describe("printable", () => {
  test.each<[string, string]>([
    ["two\nlines", "two lines"],
    ["a\r\n\tb", "a b"],
    ["\u0000\u001f\u007f\u0085\u009f", " "],
    ["\u00a0\u2028é", "\u00a0\u2028é"],
    ["\ud800 alone", "\ufffd alone"],
    ["", ""],
    ["x".repeat(256), "x".repeat(256)],
    ["x".repeat(257), `${"x".repeat(255)}…`],
  ])("%j", (text, expected) => {
    expect(printable(text)).toBe(expected);
  });

  test("a character is not cut in two", () => {
    const cut = printable(`${"x".repeat(254)}😀😀`);
    expect(cut.isWellFormed()).toBe(true);
    expect(cut.length).toBe(256);
  });
});
