import type { z } from "zod";
import { isObject, type Json, type JsonObject, stringAt } from "./json.ts";
import type { Kind, KindVersion } from "./kind.ts";
import { checkSubdomain } from "./kubernetes/names.ts";
import { groupVersionOf } from "./kubernetes/object.ts";
import type { Path } from "./path.ts";
import { caution, type Problem, problem } from "./problem.ts";
import { didYouMean } from "./suggest.ts";
import type { View } from "./view.ts";

/** The version of a kind that an object is written in. */
export function versionOf(kind: Kind, object: JsonObject): KindVersion | undefined {
  const { version } = groupVersionOf(stringAt(object, "apiVersion") ?? "");
  return kind.versions.find(({ name }) => name === version);
}

/**
 * All that is wrong with an object of one of our kinds: its schema, its name, and what the module's own `check` finds. One
 * schema serves this, the type and the CRD, so offline and in a cluster the same is refused.
 */
export function checkObject(kind: Kind, object: JsonObject, view: View): Problem[] {
  const version = versionOf(kind, object);
  if (version === undefined) {
    const known = kind.versions.map(({ name }) => `${kind.group}/${name}`);
    const written = stringAt(object, "apiVersion") ?? "";
    return [problem(["apiVersion"], `${kind.kind} has no version "${written}"; use ${known.join(" or ")}`)];
  }
  const problems = checkName(object);
  const spec = object["spec"] ?? {};
  if (!isObject(spec)) problems.push(problem(["spec"], "must be an object"));
  else problems.push(...schemaProblems(version.spec, spec));
  const failed = problems.some(({ severity }) => severity === "error");
  // What a module checks further rests on the shape; with a wrong one it would only repeat what is said already.
  if (!failed && kind.check !== undefined) problems.push(...kind.check(object, view));
  return problems;
}

function checkName(object: JsonObject): Problem[] {
  const name = stringAt(object, "metadata", "name");
  if (name === undefined || name === "") {
    if (stringAt(object, "metadata", "generateName") !== undefined) return [];
    return [problem(["metadata", "name"], "is missing: every object needs a name")];
  }
  const wrong = checkSubdomain(name);
  return wrong === undefined ? [] : [problem(["metadata", "name"], wrong)];
}

function schemaProblems(schema: z.ZodType, spec: JsonObject): Problem[] {
  const result = schema.safeParse(spec);
  if (result.success) return [];
  const problems: Problem[] = [];
  for (const issue of result.error.issues) addIssue(problems, issue, ["spec"], spec, schema);
  return problems;
}

function addIssue(
  problems: Problem[],
  issue: z.core.$ZodIssue,
  above: Path,
  spec: JsonObject,
  schema: z.ZodType,
): void {
  const inner = issue.path.map((step) => (typeof step === "symbol" ? String(step) : step));
  const path = [...above, ...inner];
  switch (issue.code) {
    case "unrecognized_keys":
      for (const key of issue.keys) {
        problems.push(
          caution(
            [...path, key],
            "is not a field here and has no effect",
            didYouMean(key, fieldsAt(schema, inner)),
          ),
        );
      }
      return;
    case "invalid_value": {
      const allowed = issue.values.map(String);
      const found = valueAt(spec, inner);
      const hint = typeof found === "string" ? didYouMean(found, allowed) : undefined;
      problems.push(problem(path, `${JSON.stringify(found)} is not one of ${allowed.join(", ")}`, hint));
      return;
    }
    case "invalid_type": {
      const found = valueAt(spec, inner);
      problems.push(
        found === undefined
          ? problem(path, `is missing: ${nounOf(issue.expected)} is required`)
          : problem(path, `must be ${nounOf(issue.expected)}, not ${JSON.stringify(found).slice(0, 60)}`),
      );
      return;
    }
    default:
      problems.push(problem(path, issue.message));
  }
}

function nounOf(expected: string): string {
  const nouns: Record<string, string> = {
    record: "an object",
    object: "an object",
    array: "a list",
    string: "a text",
    int: "a whole number",
    number: "a number",
    boolean: "true or false",
  };
  return Object.hasOwn(nouns, expected) ? (nouns[expected] ?? expected) : `a ${expected}`;
}

function valueAt(value: Json | undefined, path: Path): Json | undefined {
  let here: Json | undefined = value;
  for (const step of path) {
    if (Array.isArray(here)) here = here[Number(step)];
    else if (isObject(here) && Object.hasOwn(here, step)) here = here[step];
    else return undefined;
  }
  return here;
}

/** The fields that the schema knows at a place, for "did you mean". */
function fieldsAt(schema: z.ZodType, path: Path): string[] {
  let here: unknown = unwrapped(schema);
  for (const step of path) {
    const definition = here as { shape?: Record<string, unknown>; element?: unknown; valueType?: unknown };
    if (typeof step === "number") here = unwrapped(definition.element);
    else here = unwrapped(definition.shape?.[step] ?? definition.valueType);
  }
  return Object.keys((here as { shape?: object } | undefined)?.shape ?? {});
}

function unwrapped(schema: unknown): unknown {
  let here = schema as { unwrap?: () => unknown } | undefined;
  while (typeof here?.unwrap === "function" && !("element" in here)) here = here.unwrap() as typeof here;
  return here;
}
