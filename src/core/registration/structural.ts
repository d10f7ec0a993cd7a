import { z } from "zod";
import { isObject, type Json, type JsonObject } from "../json.ts";
import type { Path } from "../path.ts";
import { fieldPath } from "../path.ts";

/** zod writes its own range for an integer without bounds, which the API server can't represent. */
const SAFE = Number.MAX_SAFE_INTEGER;
const INT32_MIN = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

/** The keywords of a schema, in reading order. Others are not known to work in a CRD. */
const KEYWORDS = [
  "description",
  "type",
  "format",
  "nullable",
  "default",
  "enum",
  "pattern",
  "minLength",
  "maxLength",
  "minimum",
  "exclusiveMinimum",
  "maximum",
  "exclusiveMaximum",
  "multipleOf",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
  "anyOf",
  "required",
  "properties",
  "additionalProperties",
  "items",
  "x-kubernetes-int-or-string",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-map-type",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-validations",
] as const;

type Schema = { [key: string]: Json | undefined };

/**
 * A zod schema as the structural schema that a CRD needs. Throws if one can't express it (unions of objects, recursion,
 * intersections): that is a mistake in a module's declaration, found by that module's first test, not something that a
 * user can cause. Unions are written the Kubernetes way instead: optional siblings and one CEL rule.
 */
export function structuralSchema(schema: z.ZodType): JsonObject {
  const written = z.toJSONSchema(schema, { target: "openapi-3.0", io: "input", reused: "inline" });
  // zod's type for it is looser than it is: plain JSON.
  return normalised(written as JsonObject, []);
}

function normalised(source: JsonObject, path: Path): JsonObject {
  const schema: Schema = { ...source };
  for (const refused of ["$ref", "oneOf", "allOf", "not", "patternProperties", "prefixItems"]) {
    if (schema[refused] !== undefined) throw cannot(path, `a CRD can't say "${refused}" here`);
  }
  if (Array.isArray(schema["anyOf"])) joinAlternatives(schema, schema["anyOf"], path);
  if (schema["type"] === "integer") boundInteger(schema);
  if (schema["type"] === "object") openObject(schema, path);
  if (isObject(schema["items"])) schema["items"] = normalised(schema["items"], [...path, "items"]);
  checkPattern(schema, path);
  // An unrestricted value must be explicit: a schema without a type is invalid in a CRD.
  if (schema["type"] === undefined && schema["x-kubernetes-int-or-string"] === undefined)
    schema["x-kubernetes-preserve-unknown-fields"] = true;
  const ordered: Schema = {};
  for (const keyword of KEYWORDS) if (schema[keyword] !== undefined) ordered[keyword] = schema[keyword];
  return ordered;
}

function openObject(schema: Schema, path: Path): void {
  const { properties, additionalProperties } = schema;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  if (isObject(properties) && (Object.keys(properties).length > 0 || additionalProperties === false)) {
    const inner: Schema = {};
    for (const [name, value] of Object.entries(properties)) {
      if (!isObject(value)) continue;
      const member = { ...normalised(value, [...path, name]) };
      // If null counts as absent the flag must go: only then the API server drops the null before CEL sees it.
      if (!required.includes(name)) delete member["nullable"];
      inner[name] = member;
    }
    // The API server does not store an empty one.
    if (Object.keys(inner).length > 0) schema["properties"] = inner;
    else delete schema["properties"];
    // The API server prunes unlisted fields, and kubectl rejects them: beside `properties` the keyword itself is
    // rejected.
    delete schema["additionalProperties"];
    if (additionalProperties !== false && additionalProperties !== undefined)
      schema["x-kubernetes-preserve-unknown-fields"] = true;
  } else if (isObject(additionalProperties)) {
    delete schema["properties"];
    schema["additionalProperties"] = normalised(additionalProperties, [...path, "*"]);
  }
  if (required.length === 0) delete schema["required"];
}

function boundInteger(schema: Schema): void {
  const { minimum, maximum } = schema;
  const narrow = typeof minimum === "number" && typeof maximum === "number";
  schema["format"] = narrow && minimum >= INT32_MIN && maximum <= INT32_MAX ? "int32" : "int64";
  if (minimum === -SAFE) delete schema["minimum"];
  if (maximum === SAFE) delete schema["maximum"];
  if (minimum === INT32_MIN && maximum === INT32_MAX) {
    delete schema["minimum"];
    delete schema["maximum"];
  }
}

/** Turns alternatives into the forms that a CRD allows, or refuses them. */
function joinAlternatives(schema: Schema, alternatives: readonly Json[], path: Path): void {
  const branches = alternatives.map((one) => normalised(isObject(one) ? one : {}, path));
  const types = branches.map(({ type }) => type);
  delete schema["anyOf"];
  if (types.length === 2 && types.includes("integer") && types.includes("string")) {
    // Bounds of one type do not affect a value of the other, so they may be combined.
    for (const { type: _type, format: _format, ...bounds } of branches)
      Object.assign(schema, bounds, { ...schema });
    schema["x-kubernetes-int-or-string"] = true;
    return;
  }
  const [type] = types;
  if (typeof type !== "string" || type === "object" || type === "array" || types.some((one) => one !== type))
    throw cannot(path, "a CRD can't say a union of these; use optional siblings and a CEL rule");
  schema["type"] = type;
  if (branches.every((branch) => Array.isArray(branch["enum"]))) {
    schema["enum"] = [...new Set(branches.flatMap((branch) => (branch["enum"] as Json[] | undefined) ?? []))];
    return;
  }
  // The type is declared once, outside: alternatives of a structural schema may only have bounds.
  schema["anyOf"] = branches.map(({ type: _type, description: _description, ...bounds }) => bounds);
}

function checkPattern(schema: Schema, path: Path): void {
  const { pattern, format } = schema;
  if (typeof pattern !== "string") return;
  // zod expresses a date twice, and its pattern is a screen long.
  if (format === "date-time" || format === "date") delete schema["pattern"];
  else if (/\(\?[=!<]/.test(pattern)) throw cannot(path, `Go has no look-around, which ${pattern} uses`);
}

function cannot(path: Path, why: string): Error {
  return new Error(`${path.length === 0 ? "the schema" : fieldPath(path)}: ${why}`);
}
