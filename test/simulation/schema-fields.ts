/** The fields of a schema with their interesting values, by which transitions move them. */
import { z } from "zod";
import { at, equal, isObject, type Json, type JsonObject, listAt } from "../../src/core/json.ts";

export interface Field {
  /** `modules.placement.fallback` */
  readonly path: string;
  /** `undefined`: neither the schema nor a sample names any. */
  readonly values: readonly unknown[] | undefined;
}

export type Samples = Readonly<Record<string, readonly unknown[]>>;

/**
 * Values are samples, or else those of an enum or a boolean, or the bounds of a number. `inner` has the fields of objects
 * whose schema does not name them.
 */
export function* fieldsOf(
  schema: Json | undefined,
  samples: Samples,
  inner: (name: string) => Iterable<Field> | undefined = () => undefined,
  path: readonly string[] = [],
): Generator<Field> {
  const name = path.join(".");
  const others = listAt(schema, "anyOf").filter((one) => at(one, "type") !== "null");
  if (others.length === 1) return yield* fieldsOf(others[0], samples, inner, path);
  const properties = at(schema, "properties");
  if (isObject(properties) && Object.keys(properties).length > 0 && samples[name] === undefined) {
    for (const [key, one] of Object.entries(properties)) yield* fieldsOf(one, samples, inner, [...path, key]);
    return;
  }
  const given = inner(name);
  if (given !== undefined) return yield* given;
  const bounds = ["minimum", "maximum"].flatMap((bound) => at(schema, bound) ?? []);
  const named =
    at(schema, "enum") !== undefined
      ? listAt(schema, "enum")
      : at(schema, "type") === "boolean"
        ? [true, false]
        : bounds.length > 0
          ? bounds
          : undefined;
  yield { path: name, values: samples[name] ?? named };
}

export function jsonSchema(schema: z.ZodType): Json {
  return z.toJSONSchema(schema, { unrepresentable: "any", io: "input" }) as Json;
}

/** One field at one value. */
export interface Move {
  readonly path: string;
  readonly value: unknown;
}

/** Each field at each of its values that the base does not have. Fields that do not move have a reason in `unmoved`. */
export function movesOf(
  fields: readonly Field[],
  base: JsonObject,
  unmoved: Readonly<Record<string, string>>,
): Move[] {
  return fields.flatMap(({ path, values }) => {
    if (unmoved[path] !== undefined) return [];
    if (values === undefined)
      throw new Error(`${path} has no value here: add some to its samples, or a reason why it does not move`);
    return values
      .filter((value) => !equal((at(base, ...stepsOf(path)) ?? null) as Json, value as Json))
      .map((value) => ({ path, value }));
  });
}

/** No name of a field, a module or a gate has a dot. */
export function stepsOf(path: string): string[] {
  return path.split(".");
}

export function withField(
  object: JsonObject,
  [first = "", ...rest]: readonly string[],
  value: unknown,
): JsonObject {
  const inner = at(object, first);
  return {
    ...object,
    [first]: rest.length === 0 ? (value as Json) : withField(isObject(inner) ? inner : {}, rest, value),
  };
}

export function nameOfMove({ path, value }: Move): string {
  return `${path}: ${JSON.stringify(value)}`;
}
