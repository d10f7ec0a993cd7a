import type { z } from "zod";
import { isObject, type Json, type JsonObject } from "../json.ts";
import type { Path } from "../path.ts";
import { type Problem, problem, warningProblem } from "./problem.ts";
import { didYouMean } from "./suggest.ts";

/** What a schema finds wrong with a spec, in sentences; paths begin at the object's top. */
export function schemaProblems(schema: z.ZodType, spec: JsonObject): Problem[] {
  const result = schema.safeParse(spec);
  if (result.success) return [];
  const problems: Problem[] = [];
  for (const issue of result.error.issues) addIssue(problems, issue, [], spec, schema);
  return problems;
}

/** Turns what zod found into problems. `above`: where the issue's own path begins, inside a union. */
function addIssue(
  problems: Problem[],
  issue: z.core.$ZodIssue,
  above: Path,
  spec: JsonObject,
  schema: z.ZodType,
): void {
  const inner = [...above, ...issue.path.map((step) => (typeof step === "symbol" ? String(step) : step))];
  const path = ["spec", ...inner];
  const found = valueAt(spec, inner);
  // The API server takes null for absent, and so a required field that is null for missing.
  const missing = found === undefined || found === null;
  if (!isPlain(issue.message)) {
    problems.push(problem(path, issue.message));
    return;
  }
  switch (issue.code) {
    case "unrecognized_keys":
      for (const key of issue.keys) problems.push(unknownField([...path, key], key, fieldsAt(schema, inner)));
      return;
    case "invalid_value":
      problems.push(wrongValue(path, issue.values.map(String), found));
      return;
    case "invalid_type":
      if (missing) problems.push(problem(path, `is missing: ${nounOf(issue.expected)} is required`));
      else {
        const message = `must be ${nounOf(issue.expected)}, got ${shown(found)}`;
        problems.push(problem(path, message, quotesHint(issue.expected, found)));
      }
      return;
    case "too_small":
    case "too_big":
      problems.push(problem(path, boundMessage(issue, found)));
      return;
    case "invalid_format":
      problems.push(
        problem(path, `${shown(found)} does not have the form that is asked for: ${formOf(issue)}`),
      );
      return;
    case "invalid_key":
      problems.push(
        problem(path, `is not a good key: ${issue.issues.map(({ message }) => message).join(", ")}`),
      );
      return;
    case "invalid_union":
      addUnion(problems, issue, inner, spec, schema);
      return;
    default:
      problems.push(problem(path, issue.message));
  }
}

/** Whether a message is zod's own: a schema that brings a sentence of its own knows better than the cases here. */
function isPlain(message: string): boolean {
  return /^(Invalid |Too (big|small): |Unrecognized key)/.test(message);
}

export function unknownField(path: Path, key: string, known: readonly string[]): Problem {
  return warningProblem(path, "is not a field here and has no effect", didYouMean(key, known));
}

function wrongValue(path: Path, values: readonly string[], found: Json | undefined): Problem {
  // An empty choice only says that the field may be left empty.
  const allowed = values.filter((value) => value !== "");
  const choice = allowed.length === 1 ? allowed.join("") : `one of ${allowed.join(", ")}`;
  if (found === undefined || found === null) return problem(path, `is missing: ${choice} is required`);
  const hint = typeof found === "string" ? didYouMean(found, allowed) : undefined;
  return problem(path, `${shown(found)} is not ${choice}`, hint);
}

/**
 * Each alternative failed. If one took the value's type and only something inside it is wrong, that is what the writer meant;
 * else all types are named.
 */
function addUnion(
  problems: Problem[],
  issue: z.core.$ZodIssueInvalidUnion,
  inner: Path,
  spec: JsonObject,
  schema: z.ZodType,
): void {
  const near = issue.errors.find((list) => !list.some((one) => isOfType(one)));
  if (near !== undefined && near.length > 0) {
    for (const one of near) addIssue(problems, one, inner, spec, schema);
    return;
  }
  const found = valueAt(spec, inner);
  const nouns = issue.errors.flatMap((list) =>
    list.flatMap((one) => (one.code === "invalid_type" ? [nounOf(one.expected)] : [])),
  );
  const choice = nouns.length === 0 ? "of another form" : [...new Set(nouns)].join(" or ");
  const path = ["spec", ...inner];
  if (found === undefined || found === null)
    problems.push(problem(path, `is missing: ${choice} is required`));
  else problems.push(problem(path, `must be ${choice}, got ${shown(found)}`));
}

function isOfType(issue: z.core.$ZodIssue): boolean {
  return issue.code === "invalid_type" && issue.path.length === 0;
}

function boundMessage(
  issue: z.core.$ZodIssueTooSmall | z.core.$ZodIssueTooBig,
  found: Json | undefined,
): string {
  const small = issue.code === "too_small";
  const bound = Number(small ? issue.minimum : issue.maximum);
  const least = small ? "at least" : "at most";
  if (issue.origin === "array" || issue.origin === "set") {
    if (small && bound === 1) return "must not be empty: at least one item is required";
    return `has too ${small ? "few" : "many"} items: ${least} ${bound} are allowed`;
  }
  if (issue.origin === "string") {
    if (small && bound === 1) return "must not be empty";
    return `${shown(found)} is too ${small ? "short" : "long"}: ${least} ${bound} characters are allowed`;
  }
  const limit = issue.inclusive === false ? (small ? "more than" : "less than") : least;
  return `must be ${limit} ${bound}, got ${shown(found)}`;
}

function formOf(issue: z.core.$ZodIssueInvalidStringFormat): string {
  return issue.format === "regex" && issue.pattern !== undefined ? issue.pattern : issue.format;
}

/** YAML reads an unquoted `true` or `8` as a boolean or a number, and a quoted number as a text. */
function quotesHint(expected: string, found: Json | undefined): string | undefined {
  if (expected === "string" && (typeof found === "number" || typeof found === "boolean"))
    return `write it in quotes: "${found}"`;
  const number = expected === "number" || expected === "int";
  if (number && typeof found === "string" && /^-?[0-9]+$/.test(found)) return "write it without quotes";
  return undefined;
}

/** Enough of a value to recognise it; a whole object would drown the message. */
const SHOWN_CHARACTERS = 60;

export function shown(value: Json | undefined): string {
  const text = JSON.stringify(value ?? null);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

function nounOf(expected: string): string {
  const nouns: Record<string, string> = {
    record: "an object",
    object: "an object",
    array: "a list",
    string: "a string",
    int: "an integer",
    number: "a number",
    boolean: "true or false",
    nonoptional: "a value",
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
  let here = alternatives(schema);
  for (const step of path) here = here.flatMap((one) => alternatives(inside(one, step)));
  return [...new Set(here.flatMap((one) => Object.keys(one.shape ?? {})))];
}

/** What of a zod schema leads further in. zod's classes share no type that says so. */
interface Inner {
  readonly shape?: Readonly<Record<string, unknown>>;
  readonly element?: unknown;
  readonly valueType?: unknown;
  readonly options?: readonly unknown[];
  readonly in?: unknown;
  readonly out?: unknown;
  readonly unwrap?: () => unknown;
}

function inside(schema: Inner, step: string | number): unknown {
  if (typeof step === "number") return schema.element;
  return schema.shape !== undefined && Object.hasOwn(schema.shape, step)
    ? schema.shape[step]
    : schema.valueType;
}

/** The schemas that a value may be held to: optional ones opened, the sides of a pipe and of a union one by one. */
function alternatives(schema: unknown): Inner[] {
  if (typeof schema !== "object" || schema === null) return [];
  const here: Inner = schema;
  if (here.element !== undefined) return [here];
  if (typeof here.unwrap === "function") return alternatives(here.unwrap());
  if (Array.isArray(here.options)) return here.options.flatMap(alternatives);
  if (here.in !== undefined) return [...alternatives(here.in), ...alternatives(here.out)];
  return [here];
}
