import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { Kind } from "../../core/policy/kind.ts";
import { didYouMean } from "../../core/suggest.ts";
import { CallError } from "../exit.ts";

import type { Io } from "../io.ts";
import { table } from "../output/table.ts";
import { terminal } from "../output/terminal.ts";
import { yamlText } from "../output/yaml.ts";
import { wrap } from "../wrap.ts";
import { anySchema, apiVersionsOf, kindSchema, writtenKinds } from "./json-schemas.ts";

export interface SchemaOptions {
  readonly recursive?: boolean;
  readonly output: "table" | "json" | "yaml";
}

/** Describes a kind, or a field of it. */
export async function schema(what: string | undefined, options: SchemaOptions, io: Io): Promise<void> {
  const screen = terminal(io, {});
  const { output } = options;
  const print = (value: Json) =>
    screen.out(output === "json" ? JSON.stringify(value, null, 2) : yamlText(value));
  const kinds = await writtenKinds(io.modules);
  if (what === undefined) {
    if (output !== "table") print(anySchema(kinds));
    else {
      const rows = kinds.map((kind) => [
        kind.kind,
        kind.shortNames?.join(",") ?? "-",
        apiVersionsOf(kind)[0] ?? "",
        kind.standing === "file" ? "file" : kind.scope,
        kind.summary,
      ]);
      for (const line of table(["KIND", "SHORT", "APIVERSION", "SCOPE", "SUMMARY"], rows, screen.width))
        screen.out(line);
    }
    return;
  }
  const [name = "", ...path] = what.split(".");
  const kind = kindNamed(name, kinds);
  const found = fieldAt(kindSchema(kind), path, kind.kind);
  if (output !== "table") print(found);
  else for (const line of described(kind, path, found, options.recursive === true)) screen.out(line);
}

/** By kind, plural, singular or short name, whatever its case. */
function kindNamed(name: string, kinds: readonly Kind[]): Kind {
  const wanted = name.toLowerCase();
  const namesOf = ({ kind, plural, singular, shortNames = [] }: Kind) => [
    kind.toLowerCase(),
    plural,
    singular,
    ...shortNames,
  ];
  const found = kinds.find((kind) => namesOf(kind).includes(wanted));
  if (found !== undefined) return found;
  const names = kinds.map(({ kind }) => kind);
  throw new CallError(`unknown kind ${name}; ${didYouMean(name, names) ?? `known: ${names.join(", ")}`}`);
}

/** The schema of a field. Indexes of lists need not be named, and any key of a map is a field. */
function fieldAt(schema: JsonObject, path: readonly string[], where: string): JsonObject {
  const [step, ...rest] = path;
  if (step === undefined) return schema;
  const fields = fieldsOf(schema);
  const next = fields[step] ?? innerOf(schema)["additionalProperties"];
  if (!isObject(next)) {
    const known = Object.keys(fields);
    const hint =
      didYouMean(step, known) ?? (known.length === 0 ? "it has no fields" : `it has ${known.join(", ")}`);
    throw new CallError(`${where} has no field ${step}; ${hint}`);
  }
  return fieldAt(next, rest, `${where}.${step}`);
}

/** Of a field that may be null, the other choice. */
function unwrapped(schema: JsonObject): JsonObject {
  const choices = Array.isArray(schema["anyOf"]) ? schema["anyOf"].filter(isObject) : [];
  const [only] = choices.filter((one) => one["type"] !== "null");
  return only === undefined ? schema : unwrapped(only);
}

/** The schema of a list's elements, or the value's own. */
function innerOf(schema: JsonObject): JsonObject {
  const { items, ...rest } = unwrapped(schema);
  return isObject(items) ? unwrapped(items) : rest;
}

function fieldsOf(schema: JsonObject): Record<string, Json> {
  const { properties } = innerOf(schema);
  return isObject(properties) ? ({ ...properties } as Record<string, Json>) : {};
}

/** `<string>`, `<[]Object>`, `<map[string]string>` as kubectl explain writes them. */
function typeText(schema: JsonObject): string {
  const value = unwrapped(schema);
  if (isObject(value["items"])) return `[]${typeText(value["items"])}`;
  if (value["const"] !== undefined || Array.isArray(value["enum"])) return "string";
  if (isObject(value["additionalProperties"])) return `map[string]${typeText(value["additionalProperties"])}`;
  const type = stringAt(value, "type") ?? "any";
  return type === "object" ? "Object" : type;
}

function described(kind: Kind, path: readonly string[], schema: JsonObject, recursive: boolean): string[] {
  const heading = [`KIND:     ${kind.kind}`, `VERSION:  ${apiVersionsOf(kind)[0]}`, ""];
  const field = path.length === 0 ? [] : [`FIELD: ${path.at(-1)} <${typeText(schema)}>`, ""];
  const fields = Object.keys(fieldsOf(schema));
  return [
    ...heading,
    ...field,
    "DESCRIPTION:",
    ...indented(descriptionOf(schema)),
    ...limitsOf(schema).map((line) => `    ${line}`),
    ...(fields.length === 0 ? [] : ["", "FIELDS:", ...fieldLines(schema, 1, recursive)]),
  ];
}

function descriptionOf(schema: JsonObject): string {
  return stringAt(schema, "description") ?? stringAt(innerOf(schema), "description") ?? "(none)";
}

function indented(text: string, by = 4): string[] {
  return wrap(text)
    .split("\n")
    .map((line) => `${" ".repeat(by)}${line}`);
}

/** The allowed values, if the schema has more than a type. */
function limitsOf(schema: JsonObject): string[] {
  const one = innerOf(schema);
  const choices = Array.isArray(one["enum"]) ? one["enum"].filter((value) => value !== "") : [];
  const from = one["minimum"];
  const to = one["maximum"];
  const isBounded = typeof to === "number" && Math.abs(to) < Number.MAX_SAFE_INTEGER;
  return [
    ...(choices.length > 0 ? [`One of: ${choices.join(", ")}`] : []),
    ...(isBounded ? [`From ${typeof from === "number" ? from : "any"} to ${to}`] : []),
    ...(typeof schema["maxItems"] === "number" ? [`At most ${schema["maxItems"]} items`] : []),
  ];
}

function fieldLines(schema: JsonObject, depth: number, recursive: boolean): string[] {
  const indent = "  ".repeat(depth);
  const required = innerOf(schema)["required"];
  return Object.entries(fieldsOf(schema)).flatMap(([name, field]) => {
    if (!isObject(field)) return [];
    const needed = Array.isArray(required) && required.includes(name) ? " -required-" : "";
    const head = `${indent}${name} <${typeText(field)}>${needed}`;
    if (recursive) return [head, ...fieldLines(field, depth + 1, true)];
    return [head, ...indented(descriptionOf(field), indent.length + 2), ""];
  });
}
