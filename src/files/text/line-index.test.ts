import fc from "fast-check";
import { expect, test } from "vitest";
import { positionAt } from "./code-frame.ts";
import { LineIndex } from "./line-index.ts";

test("every offset is in the line that a scan finds", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "\n", "\r", "ü") });
  fc.assert(
    fc.property(text, (one) => {
      const lines = new LineIndex(one);
      for (let offset = 0; offset <= one.length; offset++)
        expect(lines.lineAt(offset)).toBe(positionAt(one, offset).line);
    }),
  );
});
