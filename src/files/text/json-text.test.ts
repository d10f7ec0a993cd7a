import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { Json } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import { parseJson } from "./json-text.ts";

function* pathsOf(value: Json, path: Path = []): Iterable<[Path, Json]> {
  yield [path, value];
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value))
    yield* pathsOf(inner as Json, [...path, Array.isArray(value) ? Number(key) : key]);
}

test("locates every value and its key", () => {
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), fc.constantFrom(0, 2), (generated, indent) => {
      const text = `\n ${JSON.stringify(generated, null, indent)} \n`;
      const value = JSON.parse(text) as Json;
      const document = parseJson(text);
      for (const [path, inner] of pathsOf(value)) {
        const place = document?.locate(path);
        expect(place?.exact).toBe(true);
        expect(JSON.parse(text.slice(place?.value.start, place?.value.end))).toEqual(inner);
        const last = path.at(-1);
        if (typeof last === "string")
          expect(JSON.parse(text.slice(place?.key?.start, place?.key?.end))).toBe(last);
        else expect(place?.key).toBeUndefined();
      }
    }),
  );
});

test("locates what is absent at the nearest value around it", () => {
  const text = '{"spec": {"containers": [{"name": "a"}]}}';
  const document = parseJson(text);
  expect(document?.locate(["spec", "containers", 3, "name"])).toEqual({
    key: { start: 10, end: 22 },
    value: { start: 24, end: 25 },
    exact: false,
  });
  expect(document?.locate(["toString"])).toEqual({
    key: undefined,
    value: { start: 0, end: 1 },
    exact: false,
  });
});

test("locates all items of a list in as many steps as the list is long", () => {
  const steps = (count: number): number => {
    const items = Array.from({ length: count }, (_, i) => ({ metadata: { name: `pod-${i}` } }));
    const document = parseJson(JSON.stringify({ kind: "List", items }));
    const exec = vi.spyOn(RegExp.prototype, "exec");
    try {
      for (let i = 0; i < count; i++) document?.locate(["items", i, "metadata", "name"]);
      return exec.mock.calls.length;
    } finally {
      exec.mockRestore();
    }
  };
  expect(steps(100)).toBeGreaterThan(100);
  expect(steps(400)).toBeLessThan(5 * steps(100));
});
