import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  checkAnnotationKey,
  checkDnsLabel,
  checkLabelKey,
  checkLabelValue,
  checkQualifiedName,
  checkSubdomain,
} from "./names.ts";

const a = (count: number) => "a".repeat(count);

interface Case {
  readonly check: (text: string) => string | undefined;
  readonly good: readonly string[];
  readonly bad: readonly string[];
}

const cases: Record<string, Case> = {
  checkDnsLabel: {
    check: checkDnsLabel,
    good: ["a", "0", "a-b", "a--b", "1a", a(63)],
    bad: ["", "-a", "a-", "A", "a.b", "a_b", "ä", "a\n", " a", a(64), "ａ"],
  },
  checkSubdomain: {
    check: checkSubdomain,
    good: ["a", "a.b", "0.1", "a-b.c", a(253), `${a(200)}.b`],
    bad: ["", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "A.b", "a_b", a(254), "a.b\n"],
  },
  checkLabelValue: {
    check: checkLabelValue,
    good: ["", "a", "A", "0", "a.b_c-d", "a..b", a(63)],
    bad: ["-", "-5", "+5", "a-", "_a", ".a", "a b", "a/b", "é", a(64), "a\n"],
  },
};
const qualified: Omit<Case, "check"> = {
  good: ["a", "A", "a.b_c-d", "example.com/a", `${a(253)}/${a(63)}`, "x__proto__x", "constructor"],
  bad: [
    "",
    "/",
    "/a",
    "a/",
    "a/b/c",
    "_example/a",
    "Example/a b",
    `${a(254)}/a`,
    a(64),
    "a b",
    "-a",
    "a..b/c",
  ],
};
cases["checkQualifiedName"] = { check: checkQualifiedName, ...qualified };
cases["checkLabelKey"] = { check: checkLabelKey, ...qualified };
cases["checkAnnotationKey"] = { check: checkAnnotationKey, ...qualified };

describe.each(Object.entries(cases))("%s", (_name, { check, good, bad }) => {
  test.each(good)("accepts %j", (text) => {
    expect(check(text)).toBeUndefined();
  });

  test.each(bad)("refuses %j", (text) => {
    expect(check(text)).toMatch(/^[^\n]{10,400}$/);
  });
});

test("capitals in the prefix are for annotations only", () => {
  expect(checkAnnotationKey("Example.COM/Name")).toBeUndefined();
  expect(checkLabelKey("Example.COM/Name")).toContain("prefix");
  expect(checkAnnotationKey("\u0130x/\u212a")).toBeUndefined();
});

test("a message names the string, the kind of name and the rule", () => {
  expect(checkDnsLabel("Team A")).toBe(
    '"Team A" is not a DNS label: use lower-case letters, digits and "-", beginning and ending with a letter or digit',
  );
  expect(checkDnsLabel(a(64))).toBe(`"${a(64)}" is too long for a DNS label: at most 63 characters`);
  expect(checkLabelKey("a b")).toContain('"a b" is not a label key');
  expect(checkLabelKey("x/a b")).toContain('(after "/")');
  expect(checkLabelKey("a/b/c")).toContain('at most one "/"');
  expect(checkLabelValue("x\u0007")).toContain('"x\\u0007"');
  expect(checkLabelValue(a(10_000))?.length).toBeLessThan(200);
});

/** The same rules read one character at a time. */
function simpleLabel(text: string, first: string, inner: string, last: string, limit: number): boolean {
  if (text.length === 0 || text.length > limit) return false;
  return [...text].every((character, i) => {
    if (!inner.includes(character)) return false;
    if (i === 0 && !first.includes(character)) return false;
    return i !== text.length - 1 || last.includes(character);
  });
}

const LOWER = "abcdefghijklmnopqrstuvwxyz";
const DIGITS = "0123456789";
const ALNUM = LOWER + LOWER.toUpperCase() + DIGITS;
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom(..."aZ0-._/ é"), maxLength: 8 }),
  fc.string({ unit: fc.constantFrom(..."a0-."), minLength: 60, maxLength: 66 }),
  fc.string({ unit: fc.constantFrom(..."a0-."), minLength: 250, maxLength: 256 }),
  fc.string({ unit: "binary" }),
);

test("the patterns agree with a reading letter by letter", () => {
  fc.assert(
    fc.property(text, (sample) => {
      const lower = LOWER + DIGITS;
      const label = (part: string, limit: number) => simpleLabel(part, lower, `${lower}-`, lower, limit);
      const name = (part: string) => simpleLabel(part, ALNUM, `${ALNUM}-_.`, ALNUM, 63);
      const domain = (whole: string) =>
        whole.length <= 253 && whole.split(".").every((part) => label(part, 253));
      expect(checkDnsLabel(sample) === undefined).toBe(label(sample, 63));
      expect(checkSubdomain(sample) === undefined).toBe(domain(sample));
      expect(checkLabelValue(sample) === undefined).toBe(sample === "" || name(sample));
      const parts = sample.split("/");
      const [first = "", second] = parts;
      const good = second === undefined ? name(first) : parts.length === 2 && domain(first) && name(second);
      expect(checkLabelKey(sample) === undefined).toBe(good);
    }),
    { numRuns: 500 },
  );
});
