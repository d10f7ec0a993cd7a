import fc from "fast-check";
import type { Json, JsonObject } from "../../src/core/json.ts";
import { setOwn } from "../../src/core/json.ts";

/** Keys that trip careless code, among ordinary ones. */
export const HOSTILE_KEYS = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "",
  "~",
  "/",
  "~1",
  "~01/~",
  "0",
  "-",
];

export const anyKey = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("a", "b", "c", "list", "spec") },
  { weight: 1, arbitrary: fc.constantFrom(...HOSTILE_KEYS) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 4 }) },
);

const leaf: fc.Arbitrary<Json> = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.integer({ min: -5, max: 5 }),
  fc.constantFrom("", "x", "y"),
);

function objectOf(keys: fc.Arbitrary<string>, value: fc.Arbitrary<Json>): fc.Arbitrary<JsonObject> {
  return fc.array(fc.tuple(keys, value), { maxLength: 4 }).map((members) => {
    const made: Record<string, Json> = {};
    for (const [key, inner] of members) setOwn(made, key, inner);
    return made;
  });
}

/** JSON values up to three levels deep whose objects have keys of this kind. */
export function jsonWith(keys: fc.Arbitrary<string>): fc.Arbitrary<Json> {
  return level(keys, 3);
}

export function jsonObjectWith(keys: fc.Arbitrary<string>): fc.Arbitrary<JsonObject> {
  return objectOf(keys, level(keys, 3));
}

function level(keys: fc.Arbitrary<string>, depth: number): fc.Arbitrary<Json> {
  if (depth === 0) return leaf;
  const inner = level(keys, depth - 1);
  return fc.oneof(leaf, fc.array(inner, { maxLength: 3 }), objectOf(keys, inner));
}

/** A copy as parsed from the wire: shares nothing with the value. */
export function again<Value extends Json>(value: Value): Value {
  return JSON.parse(JSON.stringify(value));
}
