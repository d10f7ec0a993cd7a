import type { Json } from "../../src/core/json.ts";

export const HOSTILE_VALUES: readonly Json[] = [
  { toString: 1 },
  { toString: 1, valueOf: 1, length: 3 },
  [{ toString: 1 }],
  { toJSON: 1 },
  JSON.parse('{"__proto__":{"toString":1}}') as Json,
  null,
  7,
  "x",
  [[[]]],
];

/** Copies of the object, each with one of its values replaced. */
export function* replaced(value: Json, by: Json): Generator<Json> {
  yield by;
  if (typeof value !== "object" || value === null) return;
  for (const [key, member] of Object.entries(value)) {
    for (const changed of replaced(member as Json, by)) {
      yield Array.isArray(value) ? value.with(Number(key), changed) : { ...value, [key]: changed };
    }
  }
}
