import { describe, expect, test } from "vitest";
import { z } from "zod";
import { isObject, type Json, type JsonObject } from "../json.ts";
import { LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN, SET_VALUES } from "../kubernetes/schemas/bounds.ts";
import { nodeSelectorTerm } from "../kubernetes/schemas/node-affinity.ts";
import {
  affinity,
  labelMap,
  labelSelector,
  nodeAffinity,
  podAffinity,
  podAntiAffinity,
  toleration,
  topologySpreadConstraint,
} from "../kubernetes/schemas.ts";
import { structuralSchema } from "./structural.ts";

/** The nested schemas of a schema, with their paths. */
function children(schema: JsonObject, at: string): [string, JsonObject][] {
  const found: [string, Json | undefined][] = [
    [`${at}.items`, schema["items"]],
    [`${at}.*`, schema["additionalProperties"]],
  ];
  if (isObject(schema["properties"]))
    for (const [name, value] of Object.entries(schema["properties"])) found.push([`${at}.${name}`, value]);
  return found.flatMap(([path, value]): [string, JsonObject][] => (isObject(value) ? [[path, value]] : []));
}

const BRANCHES = ["anyOf", "oneOf", "allOf", "not"];
const NOT_IN_BRANCHES = ["type", "description", "default", "nullable", "additionalProperties"];
const FORBIDDEN = [
  "$ref",
  "$schema",
  "definitions",
  "dependencies",
  "deprecated",
  "discriminator",
  "id",
  "patternProperties",
];

/** Violations of the rules of structural schemas; written from the rules, not from the code under test. */
function violations(schema: JsonObject, at = "$"): string[] {
  const wrong: string[] = [];
  const free =
    schema["x-kubernetes-int-or-string"] === true || schema["x-kubernetes-preserve-unknown-fields"] === true;
  if (typeof schema["type"] !== "string" && !free) wrong.push(`${at}: no type`);
  if (schema["x-kubernetes-int-or-string"] === true && schema["type"] !== undefined)
    wrong.push(`${at}: int-or-string with a type`);
  if (schema["properties"] !== undefined && schema["additionalProperties"] !== undefined)
    wrong.push(`${at}: properties and additionalProperties`);
  if (schema["type"] === "array" && !isObject(schema["items"])) wrong.push(`${at}: no items`);
  for (const bound of ["minimum", "maximum"])
    if (Math.abs(Number(schema[bound] ?? 0)) >= 2 ** 53 - 1)
      wrong.push(`${at}: ${bound} beyond what is held`);
  for (const keyword of FORBIDDEN) if (schema[keyword] !== undefined) wrong.push(`${at}: ${keyword}`);
  if (schema["uniqueItems"] === true) wrong.push(`${at}: uniqueItems`);
  if (schema["x-kubernetes-list-type"] !== undefined && schema["type"] !== "array")
    wrong.push(`${at}: list type on no list`);
  if (schema["x-kubernetes-map-type"] !== undefined && schema["type"] !== "object")
    wrong.push(`${at}: map type on no object`);
  for (const keyword of BRANCHES) {
    for (const branch of [schema[keyword] ?? []].flat()) {
      if (!isObject(branch)) wrong.push(`${at}: ${keyword} holds no schema`);
      else wrong.push(...inBranch(branch, schema, `${at}.${keyword}`));
    }
  }
  for (const [path, child] of children(schema, at)) wrong.push(...violations(child, path));
  return wrong;
}

function inBranch(branch: JsonObject, outside: JsonObject, at: string): string[] {
  const wrong = NOT_IN_BRANCHES.filter((keyword) => branch[keyword] !== undefined).map(
    (keyword) => `${at}: ${keyword}`,
  );
  const known = new Map(children(outside, ""));
  for (const [path, child] of children(branch, "")) {
    const twin = known.get(path);
    if (twin === undefined) wrong.push(`${at}${path}: not outside`);
    else wrong.push(...inBranch(child, twin, `${at}${path}`));
  }
  return wrong;
}

function undescribed(schema: JsonObject, at = "$"): string[] {
  const inner = children(schema, at);
  const named = inner.filter(([path]) => !path.endsWith(".items") && !path.endsWith(".*"));
  return [
    ...named.flatMap(([path, child]) => (typeof child["description"] === "string" ? [] : [path])),
    ...inner.flatMap(([path, child]) => undescribed(child, path)),
  ];
}

/** Lists, maps and strings without a bound: the cost of a CEL rule over them can't be estimated. */
function unbounded(schema: JsonObject, at = "$"): string[] {
  const wrong: string[] = [];
  if (schema["type"] === "array" && schema["maxItems"] === undefined) wrong.push(at);
  if (schema["type"] === "string" && schema["maxLength"] === undefined && schema["enum"] === undefined)
    wrong.push(at);
  if (schema["additionalProperties"] !== undefined && schema["maxProperties"] === undefined) wrong.push(at);
  return [...wrong, ...children(schema, at).flatMap(([path, child]) => unbounded(child, path))];
}

const EVERYTHING = structuralSchema(
  z.strictObject({
    labelMap,
    labelSelector,
    nodeAffinity,
    nodeSelectorTerm,
    podAffinity,
    podAntiAffinity,
    affinity: affinity.nullish(),
    tolerations: z.array(toleration).max(64).describe("Tolerations."),
    spread: z.array(topologySpreadConstraint).max(64).describe("Constraints."),
  }),
);

describe("the shared schemas", () => {
  test("are structural", () => expect(violations(EVERYTHING)).toEqual([]));
  test("have a description for every field", () => expect(undescribed(EVERYTHING)).toEqual([]));
  test("have bounds", () => expect(unbounded(EVERYTHING)).toEqual([]));
  test("are never nullable: the API server then drops a null", () => {
    expect(JSON.stringify(EVERYTHING)).not.toContain("nullable");
  });
});

test("the validator of this test detects non-structural schemas", () => {
  const wrong: [JsonObject, string][] = [
    [{}, "$: no type"],
    [{ type: "string", "x-kubernetes-int-or-string": true }, "$: int-or-string with a type"],
    [
      { type: "object", properties: {}, additionalProperties: false },
      "$: properties and additionalProperties",
    ],
    [{ type: "integer", maximum: Number.MAX_SAFE_INTEGER }, "$: maximum beyond what is held"],
    [{ type: "string", anyOf: [{ type: "string" }] }, "$.anyOf: type"],
    [{ type: "object", oneOf: [{ properties: { a: { minimum: 1 } } }] }, "$.oneOf.a: not outside"],
    [{ type: "array" }, "$: no items"],
  ];
  for (const [schema, said] of wrong) expect(violations(schema)).toEqual([said]);
});

test("a label selector, whole", () => {
  expect(structuralSchema(labelSelector)).toEqual({
    description:
      "Selects objects by their labels. An empty selector selects all objects, an absent one selects none.",
    type: "object",
    properties: {
      matchLabels: {
        description: "Labels that must be there with exactly these values.",
        type: "object",
        maxProperties: 1_024,
        additionalProperties: { type: "string", pattern: LABEL_VALUE_PATTERN, maxLength: 63 },
      },
      matchExpressions: {
        description: "Further requirements on labels. All must match, together with matchLabels.",
        type: "array",
        maxItems: 256,
        items: {
          description: "One condition on one label.",
          type: "object",
          required: ["key", "operator"],
          properties: {
            key: {
              description: "The label key that the requirement applies to.",
              type: "string",
              pattern: LABEL_KEY_PATTERN,
              minLength: 1,
              maxLength: 317,
            },
            operator: {
              description:
                "How the label is compared: In and NotIn with the values, Exists and DoesNotExist without any.",
              type: "string",
              enum: ["In", "NotIn", "Exists", "DoesNotExist"],
            },
            values: {
              description:
                "The values to compare with: at least one for In and NotIn. Must be empty for Exists and DoesNotExist.",
              type: "array",
              maxItems: 4_096,
              items: { type: "string", pattern: LABEL_VALUE_PATTERN, maxLength: 63 },
              "x-kubernetes-list-type": "atomic",
            },
          },
          "x-kubernetes-validations": SET_VALUES,
        },
        "x-kubernetes-list-type": "atomic",
      },
    },
    "x-kubernetes-map-type": "atomic",
  });
});

describe("each form", () => {
  const cases: [string, z.ZodType, JsonObject][] = [
    ["a whole number without bounds", z.int(), { type: "integer", format: "int64" }],
    ["a whole number with one bound", z.int().min(1), { type: "integer", format: "int64", minimum: 1 }],
    [
      "a small whole number",
      z.int().min(1).max(100),
      { type: "integer", format: "int32", minimum: 1, maximum: 100 },
    ],
    ["an int32", z.int32(), { type: "integer", format: "int32" }],
    ["a number above", z.number().gt(0), { type: "number", minimum: 0, exclusiveMinimum: true }],
    [
      "an int or a string, described outside",
      z.union([z.int().min(0), z.string().max(9)]).describe("A port."),
      { description: "A port.", minimum: 0, maxLength: 9, "x-kubernetes-int-or-string": true },
    ],
    [
      "an int or a string that may be left out",
      z.strictObject({ port: z.union([z.int(), z.string()]).nullish() }),
      { type: "object", properties: { port: { "x-kubernetes-int-or-string": true } } },
    ],
    [
      "an enum in two halves",
      z.union([z.literal("a"), z.enum(["b", "a"])]),
      { type: "string", enum: ["a", "b"] },
    ],
    [
      "alternatives of one type",
      z.union([z.string().max(1), z.string().min(3)]),
      { type: "string", anyOf: [{ maxLength: 1 }, { minLength: 3 }] },
    ],
    [
      "a meaningful null stays",
      z.strictObject({ a: z.string().nullable() }),
      { type: "object", required: ["a"], properties: { a: { type: "string", nullable: true } } },
    ],
    [
      "null in a list stays",
      z.array(z.string().nullable()),
      { type: "array", items: { type: "string", nullable: true } },
    ],
    ["an empty object, which the API server stores so", z.strictObject({}), { type: "object" }],
    [
      "an object with additional fields",
      z.looseObject({ a: z.string() }),
      {
        type: "object",
        required: ["a"],
        properties: { a: { type: "string" } },
        "x-kubernetes-preserve-unknown-fields": true,
      },
    ],
    ["anything", z.unknown(), { "x-kubernetes-preserve-unknown-fields": true }],
    ["a time", z.iso.datetime(), { type: "string", format: "date-time" }],
    ["a default", z.string().default("x"), { type: "string", default: "x" }],
    ["a pattern", z.string().regex(/^[a-z]+$/), { type: "string", pattern: "^[a-z]+$" }],
    ["a refinement vanishes", z.string().refine((text) => text !== "no"), { type: "string" }],
    [
      "list types and their keys",
      z
        .array(z.strictObject({ type: z.string() }))
        .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"], title: "T" }),
      {
        type: "array",
        items: { type: "object", required: ["type"], properties: { type: { type: "string" } } },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
      },
    ],
  ];
  test.each(cases)("%s", (_name, schema, expected) => {
    const made = structuralSchema(schema);
    expect(made).toEqual(expected);
    expect(violations(made)).toEqual([]);
  });
});

describe("a declaration that a CRD can't express is rejected with its path", () => {
  const cases: [string, z.ZodType, RegExp][] = [
    [
      "a union of objects",
      z.strictObject({ a: z.union([z.strictObject({}), z.strictObject({ b: z.string() })]) }),
      /^a: a CRD can't say a union/,
    ],
    ["a union of types", z.union([z.boolean(), z.string()]), /^the schema: a CRD can't say a union/],
    [
      "an intersection",
      z.strictObject({ a: z.intersection(z.string(), z.string()) }),
      /^a: a CRD can't say "allOf"/,
    ],
    [
      "a discriminated union",
      z.discriminatedUnion("t", [z.strictObject({ t: z.literal("a") })]),
      /a CRD can't say/,
    ],
    ["look-around", z.strictObject({ a: z.string().regex(/^(?!x)/) }), /^a: Go has no look-around/],
  ];
  test.each(cases)("%s", (_name, schema, message) => {
    expect(() => structuralSchema(schema)).toThrow(message);
  });
  test("rejects recursion", () => {
    const tree = z.strictObject({
      get child() {
        return tree.optional();
      },
    });
    expect(() => structuralSchema(tree)).toThrow(/^child: a CRD can't say/);
  });
});

test("keywords and fields have a fixed order, independent of the declaration", () => {
  const one = structuralSchema(
    z.strictObject({ b: z.string().max(3).describe("B"), a: z.int().describe("A") }),
  );
  const text = JSON.stringify(one);
  expect(text).toBe(
    '{"type":"object","required":["b","a"],"properties":{"b":{"description":"B","type":"string","maxLength":3},' +
      '"a":{"description":"A","type":"integer","format":"int64"}}}',
  );
});
