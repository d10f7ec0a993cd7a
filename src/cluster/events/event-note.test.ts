import fc from "fast-check";
import { expect, test } from "vitest";
import { noteOf } from "./event-recorder.ts";

test.each([
  ["a text that just fits", "x".repeat(1_024), "x".repeat(1_024)],
  ["one byte too many", "x".repeat(1_025), `${"x".repeat(1_021)}…`],
  ["characters that fit, whose bytes do not", "ä".repeat(600), `${"ä".repeat(510)}…`],
  ["three bytes each", "…".repeat(400), "…".repeat(341)],
  ["a surrogate pair at the limit", `x${"😀".repeat(300)}`, `x${"😀".repeat(255)}…`],
])("a note of %s", (_, message, note) => {
  expect(noteOf(message)).toBe(note);
});

test("a note is the longest prefix that fits, cut at a character boundary", () => {
  const character = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom("a", "ä", "…", "😀"),
  );
  fc.assert(
    fc.property(fc.array(character, { minLength: 100, maxLength: 1_500 }), (characters) => {
      const message = characters.join("");
      const note = noteOf(message);
      expect(note.isWellFormed()).toBe(true);
      const bytes = Buffer.byteLength(note);
      if (Buffer.byteLength(message) <= 1_024) {
        expect(note).toBe(message);
      } else {
        expect(message.startsWith(note.slice(0, -1)) && note.endsWith("…")).toBe(true);
        // One more character, of at most four bytes, would have exceeded the limit.
        expect(bytes > 1_020 && bytes <= 1_024).toBe(true);
      }
    }),
  );
});
