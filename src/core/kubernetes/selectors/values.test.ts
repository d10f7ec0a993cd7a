import fc from "fast-check";
import { expect, test } from "vitest";
import { valuesOf } from "./values.ts";

test("behaves like a Set for any number of values", () => {
  fc.assert(
    fc.property(fc.array(fc.string(), { maxLength: 4 }), fc.string(), (list, other) => {
      const values = valuesOf(list);
      const model = new Set(list);
      expect([...values]).toEqual([...model]);
      for (const value of [...list, other]) expect(values.has(value)).toBe(model.has(value));
    }),
  );
});
