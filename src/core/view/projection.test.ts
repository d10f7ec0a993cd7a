import { expect, test } from "vitest";
import { projector } from "./projection.ts";

test("an object is not changed when one place is kept as a whole and a part of it as well", () => {
  const labels = Object.freeze({ a: "1", b: "2" });
  const object = Object.freeze({ metadata: Object.freeze({ name: "x", labels }) });
  const kept = projector([
    ["metadata", "labels"],
    ["metadata", "labels", "a"],
  ])(object);
  expect(kept).toMatchObject({ metadata: { name: "x", labels: { a: "1", b: "2" } } });
});
