import fc from "fast-check";
import { expect, test } from "vitest";
import { unifiedDiff } from "./unified-diff.ts";

test.each<[string, string, string, string[]]>([
  ["equal texts", "a\nb", "a\nb", []],
  ["a changed line", "a\nb\nc", "a\nx\nc", ["@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"]],
  ["an added text", "", "a\nb", ["@@ -0,0 +1,2 @@", "+a", "+b"]],
  ["a removed text", "a", "", ["@@ -1 +0,0 @@", "-a"]],
  [
    "two changes far apart",
    ["1", ..."abcdefghij", "2"].join("\n"),
    ["x", ..."abcdefghij", "y"].join("\n"),
    ["@@ -1,4 +1,4 @@", "-1", "+x", " a", " b", " c", "@@ -9,4 +9,4 @@", " h", " i", " j", "-2", "+y"],
  ],
])("shows %s", (_, before, after, lines) => {
  expect(unifiedDiff(before, after)).toEqual(lines);
});

test("a text too long for a line comparison is shown as replaced", () => {
  const text = (start: number) => Array.from({ length: 4_100 }, (_, i) => String(start + i)).join("\n");
  const lines = unifiedDiff(text(0), text(10_000));
  expect(lines[0]).toBe("@@ -1,4100 +1,4100 @@");
  expect(lines).toHaveLength(1 + 2 * 4_100);
});

const LINES = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 30 });

test("property: the lines of a diff are those of both texts, in order", () => {
  fc.assert(
    fc.property(LINES, LINES, (before, after) => {
      const hunks = unifiedDiff(before.join("\n"), after.join("\n"));
      const side = (sign: string) =>
        hunks.filter((line) => line.startsWith(sign) || line.startsWith(" ")).map((line) => line.slice(1));
      // With at most 30 lines that differ everywhere, omitted lines are equal in both.
      const isWithin = (part: readonly string[], whole: readonly string[]) => {
        let at = 0;
        for (const line of whole) if (line === part[at]) at++;
        return at === part.length;
      };
      expect(isWithin(side("-"), before)).toBe(true);
      expect(isWithin(side("+"), after)).toBe(true);
      const changed = (sign: string) => hunks.filter((line) => line.startsWith(sign)).length;
      expect(before.length - changed("-")).toBe(after.length - changed("+"));
    }),
  );
});
