import { expect, test } from "vitest";
import { BAD_FIELDS, GOOD_FIELDS } from "../../../test/builders/strict-table.ts";
import type { Json, JsonObject } from "../../core/json.ts";
import { parseVersion } from "../../core/kubernetes/versions.ts";
import { describeProblem } from "../../core/policy/problem.ts";
import { type ApiData, ApiTypes } from "./api-types.ts";
import json from "./kubernetes-api.json" with { type: "json" };

const data: ApiData = json;

async function typesOf(version?: string): Promise<ApiTypes> {
  const parsed = version === undefined ? undefined : parseVersion(version);
  return ApiTypes.load(parsed === undefined ? undefined : { effective: parsed, binary: parsed });
}

async function problemsOf(object: JsonObject, version?: string): Promise<string[]> {
  return (await typesOf(version)).problems(object).map(describeProblem);
}

test.each(BAD_FIELDS)("finds %s", async (_what, _path, object, expected) => {
  expect(await problemsOf(object)).toEqual([expected]);
});

test.each(GOOD_FIELDS)("accepts %s", async (_what, _path, object) => {
  expect(await problemsOf(object)).toEqual([]);
});

test("skips unknown kinds", async () => {
  for (const kind of ["toString", "Gateway"])
    expect(await problemsOf({ apiVersion: "v1", kind, spec: { a: 1 } })).toEqual([]);
});

test.each([
  ["1.33.4", "hostnameOverride", "Kubernetes has it since 1.34; this is 1.33"],
  ["1.34.0-gke.1", "hostnameOverride", undefined],
  ["1.35.0", "workloadRef", undefined],
  ["1.36.0", "workloadRef", "Kubernetes had it until 1.35; this is 1.36"],
  // Unknown versions are checked like the nearest known one.
  ["1.20.0", "hostnameOverride", "Kubernetes has it since 1.34; this is 1.33"],
  ["1.99.0", "hostnameOverride", undefined],
])("in %s the field %s is as that version has it", async (version, field, hint) => {
  const object = { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { [field]: null } };
  const expected = hint === undefined ? [] : [`spec.${field}: unknown field, has no effect; ${hint}`];
  expect(await problemsOf(object, version)).toEqual(expected);
});

interface Field {
  readonly name: string;
  readonly type: string;
}

function fieldsOf(type: string, minor: number): Field[] {
  return Object.entries(data.types[type] ?? {}).flatMap(([name, written]) => {
    const [inner = "", range = "0-99"] = written.split(" ");
    const [first = 0, last = 0] = range.split("-").map(Number);
    return first <= minor && minor <= last ? [{ name, type: inner }] : [];
  });
}

/** A value of a type with every field that a version has. */
function sample(type: string, minor: number): Json {
  if (type.startsWith("[]")) return [sample(type.slice(2), minor)];
  if (type.startsWith("{}")) return { key: sample(type.slice(2), minor) };
  if (data.types[type] === undefined) return SCALAR[type] ?? null;
  return Object.fromEntries(fieldsOf(type, minor).map((one) => [one.name, sample(one.type, minor)]));
}

const SCALAR: Readonly<Record<string, Json>> = {
  any: { a: 1 },
  boolean: true,
  int32: 1,
  int64: 1,
  string: "a",
  "int64|string": 80,
  "number|string": "1Gi",
};

/** A value for each nested type, at its first occurrence. */
type Place = (inner: Json) => Json;

function* placesOf(type: string, place: Place, seen: Set<string>): Iterable<[string, Place]> {
  if (type.startsWith("[]")) yield* placesOf(type.slice(2), (inner) => place([inner]), seen);
  else if (type.startsWith("{}")) yield* placesOf(type.slice(2), (inner) => place({ key: inner }), seen);
  else if (data.types[type] !== undefined && !seen.has(type)) {
    seen.add(type);
    yield [type, place];
    for (const { name, type: inner } of fieldsOf(type, data.newest))
      yield* placesOf(inner, (value) => place({ [name]: value }), seen);
  }
}

/** Every kind: its type, and an object of it. */
const KINDS = Object.entries(data.kinds).map(([kind, type]) => {
  const [apiVersion = "", name = ""] = kind.split(" ");
  return { type, whole: (value: Json): JsonObject => ({ ...(value as JsonObject), apiVersion, kind: name }) };
});

test("accepts every field of every kind in every version that has it", async () => {
  for (let { oldest: minor } = data; minor <= data.newest; minor++) {
    const types = await typesOf(`1.${minor}.0`);
    for (const { type, whole } of KINDS)
      expect(types.problems(whole(sample(type, minor))), `1.${minor} ${type}`).toEqual([]);
  }
});

test("finds an unknown field in every type, and a wrong type of every field", async () => {
  const types = await typesOf();
  const seen = new Set<string>();
  for (const { type, whole } of KINDS) {
    for (const [inner, place] of placesOf(type, (value) => value, seen)) {
      const messages = (value: JsonObject) => types.problems(whole(place(value))).map((one) => one.message);
      expect(messages({ zzzzzzzz: 1 }), inner).toEqual(["unknown field, has no effect"]);
      for (const field of fieldsOf(inner, data.newest)) {
        if (field.type === "any" || (inner === type && /^(apiVersion|kind)$/.test(field.name))) continue;
        const wrong = field.type.startsWith("[]") ? {} : [];
        expect(messages({ [field.name]: wrong }), `${inner}.${field.name}`).toEqual([
          expect.stringMatching(/^must be .*, got (\{\}|\[\])$/),
        ]);
      }
    }
  }
  // Other types are those that only older versions have.
  const old = ["WorkloadReference"];
  expect([...seen, ...old].sort()).toEqual(Object.keys(data.types).sort());
});
