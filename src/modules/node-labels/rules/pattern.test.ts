import fc from "fast-check";
import { RE2JS } from "re2js";
import { describe, expect, it, test, vi } from "vitest";
import { LedgerLines } from "../ledger/ledger-lines.ts";
import { literalPrefix, PATTERN_LENGTH, readPattern } from "./pattern.ts";
import { prepareRule } from "./rule.ts";

function matches(source: string, text: string): boolean {
  const read = readPattern(source);
  if (!("matches" in read)) throw new Error(read.message);
  return read.matches(text);
}

describe("a pattern matches the whole name", () => {
  it.each([
    ["worker-0", "worker-0", true],
    ["worker-0", "worker-0-dummy", false],
    ["worker-0", "my-worker-0", false],
    // Between anchors as text this would mean "begins with worker-0 or ends with worker-1".
    ["worker-0|worker-1", "worker-1", true],
    ["worker-0|worker-1", "worker-0-x", false],
    ["worker-0|worker-1", "x-worker-1", false],
    ["a|ab", "ab", true],
    ["^worker-0$", "worker-0", true],
    ["^worker-0$", "worker-0-x", false],
    ["", "worker-0", false],
    ["", "", true],
    [".*", "anything", true],
    ["(?i)WORKER-.*", "worker-7", true],
    ["worker-[[:digit:]]+", "worker-12", true],
    ["worker-\\d+\\z", "worker-12", true],
    ["fi.*ode", "first-node", true],
    ["fi.*ode", "second-node", false],
    ["edge\\.site-1", "edge.site-1", true],
    ["edge\\.site-1", "edgexsite-1", false],
    ["ab?c", "ac", true],
    ["ab+c", "abbc", true],
    ["ab{0,1}c", "ac", true],
    ["\\Qa.b\\E", "a.b", true],
    ["(?m)^a$", "a\nb", false],
  ])("%j to %j: %s", (source, text, fits) => {
    expect(matches(source, text)).toBe(fits);
  });

  it("takes no longer for hostile patterns", () => {
    expect(matches("(a+)+b", "a".repeat(253))).toBe(false);
    expect(matches("(.*)*(.*)*(.*)*x", "a".repeat(253))).toBe(false);
  });
});

describe("an invalid pattern is reported with its position", () => {
  it.each([
    ["worker-[", 7, /missing closing ]/],
    ["(worker", 0, /missing closing \)/],
    ["a)b", 1, /unexpected \)/],
    ["*a", 0, /missing argument to repetition/],
    ["[a][", 3, /missing closing ]/],
    ["ab\\1", 2, /invalid escape/],
    ["x(?=a)", 1, /Perl syntax/],
    ["x(?<=a)b", 1, /named capture/],
    ["a{1001}", 1, /repeat count/],
    ["x{2}{3}", 1, /nested repetition/],
    ["worker\\", 6, /trailing backslash/],
    ["(\\pL{1,100}){1,10}", 0, /too large/],
    ["x(a)(b", 4, /missing closing \)/],
    ["[(]\\Q(\\E(a", 8, /missing closing \)/],
    ["[]()]a)", 6, /unexpected \)/],
    // One of two is wrong, and the engine does not report which.
    ["a*(*", undefined, /missing argument to repetition/],
    ["a".repeat(PATTERN_LENGTH + 1), PATTERN_LENGTH, /longer than/],
  ])("%j at %s", (source, position, message) => {
    const read = readPattern(source);
    expect(read).toMatchObject({ position, message: expect.stringMatching(message) });
  });
});

describe("the maximum cost of a pattern", () => {
  const compiles = vi.spyOn(RE2JS, "compile");

  it.each([
    ["groups that nothing closes", `(${"a.".repeat(333)}`, 1],
    ["the same of expensive classes", `(${"\\pL".repeat(333)}`, 0],
    ["many counts", "\\pL{1,999}".repeat(100), 0],
    ["counts in groups", "((a{1,30}){1,30}){1,1}".repeat(40), 0],
    ["counts in many groups", `${"(".repeat(9)}a${"){2}".repeat(9)}`.repeat(22), 0],
    ["counts behind a quoted bracket", `\\Q[\\E${"a{900}".repeat(9)}`, 0],
    ["counts behind a bracket in a class", `[]]${"a{900}".repeat(9)}`, 0],
    ["counts of a group with a bracket in a class", "(a{30}[)]){30}".repeat(9), 0],
    ["ranges that are folded", "(?i)[\\x{100}-\\x{ffff}]".repeat(40), 0],
    ["the same ones, spelled out", "(?i)[\u0100-\uffff]".repeat(40), 0],
  ])("%s", (_what, source, times) => {
    compiles.mockClear();
    readPattern(source);
    expect(compiles).toHaveBeenCalledTimes(times);
  });

  it("is paid once for all nodes that a ledger is asked about", () => {
    compiles.mockClear();
    const lines = new LedgerLines([`a=b:NoSchedule ${JSON.stringify("once-.*[0-9]")}`]);
    const taint = { key: "a", value: "b", effect: "NoSchedule" } as const;
    const found = ["once-1", "once-x", "once-2", "other"].map((node) => lines.includes(taint, node));
    expect(found).toEqual([true, false, true, false]);
    // Once to read it, and once at the first name that it may match.
    expect(compiles).toHaveBeenCalledTimes(2);
  });

  it("does not add up to more than a rule may cost", () => {
    compiles.mockClear();
    const patterns = Array.from({ length: 256 }, (_, i) => `w${i}-(a|b){1,500}`);
    const { policy, problems } = prepareRule(
      { spec: { nodeNamePatterns: [...patterns, "w-0"] } },
      { kind: "Labels", name: "r" },
    );
    expect(compiles.mock.calls.length).toBeLessThan(20);
    expect(problems.at(-1)?.message).toMatch(/exceed its cost limit/);
    // Free patterns always fit.
    expect(policy?.patterns.at(-1)?.source).toBe("w-0");
    expect(policy?.coversEveryNode).toBe(true);
  });

  it.each([
    ["whole names", (i: number) => `edge-north-rack-${i}.site.example.com`],
    ["numbers", (i: number) => `edge-north-rack${i}-[0-9]{3}\\.site\\.example\\.com`],
    ["choices", (i: number) => `edge-(north|south|west)-${i}-.*`],
  ])("and 256 patterns of %s are fine", (_what, of) => {
    const nodeNamePatterns = Array.from({ length: 256 }, (_, i) => of(i));
    expect(prepareRule({ spec: { nodeNamePatterns } }, { kind: "Labels", name: "r" }).problems).toEqual([]);
  });
});

const piece = fc.constantFrom(
  "a",
  "b",
  "-",
  "\\.",
  ".",
  "a*",
  "b+",
  "c?",
  "d{2}",
  "(x|y)",
  "[0-9]",
  "^",
  "$",
  "(?i)",
  "(?i)?",
  "(?s){0}",
  "\\Q\\E",
  "\\Q\\E?",
  "\\Q\\E*",
  "|",
  "\\d",
  "\\Qz\\E",
  "\\x7a",
  "\\pL",
  "\\07",
  "\\-",
  "\\\\",
  "ab",
);
const source = fc.array(piece, { maxLength: 6 }).map((parts) => parts.join(""));
const text = fc
  .array(fc.constantFrom("a", "b", "c", "d", "-", ".", "x", "0", "z"), { maxLength: 6 })
  .map((parts) => parts.join(""));

test.each([
  ["a(?i)?", ""],
  ["ab(?i)*", "a"],
  ["ab\\Q\\E?c", "ac"],
  ["node-1(?s){0}", "node-"],
  ["a+(?i)?", ""],
])("%s matches %j: an empty item passes its repetition on", (pattern, name) => {
  const read = readPattern(pattern);
  expect("matches" in read && read.matches(name)).toBe(true);
});

test("the known prefix and suffix of a pattern never hide a match", () => {
  fc.assert(
    fc.property(source, text, (pattern, name) => {
      const read = readPattern(pattern);
      fc.pre("matches" in read);
      // Tried with an empty choice beside the pattern, which has no prefix.
      const plain = readPattern(`(?:${pattern})|\\x00`);
      if ("matches" in read && "matches" in plain) {
        expect(literalPrefix(`(?:${pattern})|\\x00`)).toBe("");
        expect(read.matches(name)).toBe(plain.matches(name));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("any string is a pattern or has an error, and never throws", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 40 }), (any) => {
      const read = readPattern(any);
      if ("matches" in read) expect(typeof read.matches(any)).toBe("boolean");
      else {
        expect(read.position ?? 0).toBeGreaterThanOrEqual(0);
        expect(read.position ?? 0).toBeLessThanOrEqual(any.length);
      }
    }),
    { numRuns: 1_000 },
  );
});

describe("documented differences from Go 1.26", () => {
  it.each([
    ["\\p{Letter}", "\\p{L}"],
    ["\\p{lu}", "\\p{Lu}"],
    ["\\p{greek}", "\\p{Greek}"],
    ["\\p{ASCII}", "[[:ascii:]]"],
    ["(?P<n>a)(?P<n>b)", "(?P<n>a)(?P<m>b)"],
    ["(?<n>a)(?<n>b)", "(?:a)(?:b)"],
  ])("%s is refused, and %s accepted", (refused, accepted) => {
    expect(readPattern(refused)).toHaveProperty("message");
    expect(readPattern(accepted)).toHaveProperty("matches");
  });
});
