import type { z } from "zod";
import { holdsAtMost, isObject, type Json, type JsonObject } from "../json.ts";
import type { Path } from "../path.ts";
import { didYouMean } from "../suggest.ts";
import { likelyMistake, type Problem, problem, WRITE_IN_QUOTES } from "./problem.ts";
import { ProblemList } from "./problem-list.ts";

/** The problems that a schema finds in a spec; paths begin at the top of the object. */
export function schemaProblems(schema: z.ZodType, spec: JsonObject): Problem[] {
  const problems = new ProblemList();
  addSchemaProblems(problems, schema, spec);
  return problems.all(["spec"]);
}

/** An object in etcd can have six times as many, and longer checks are useless; schemas allow far less for each field. */
const MAX_VALUES = 32_768;

/** A value that is checked, and its path in the object. */
interface Checked {
  readonly problems: ProblemList;
  readonly schema: z.ZodType;
  readonly value: JsonObject;
  readonly place: Path;
}

/** The same, added to the other problems of an object. `place`: the value's path in it. */
export function addSchemaProblems(
  problems: ProblemList,
  schema: z.ZodType,
  value: JsonObject,
  place: Path = ["spec"],
): void {
  if (!holdsAtMost(value, MAX_VALUES)) {
    problems.push(problem(place, `has more than ${MAX_VALUES} values; split it into several objects`));
    return;
  }
  const result = schema.safeParse(value);
  if (result.success) return;
  for (const issue of result.error.issues) addIssue(issue, [], { problems, schema, value, place });
}

/** Turns zod's issues into problems. `above`: the base of the issue's path, inside a union. */
function addIssue(issue: z.core.$ZodIssue, above: Path, checked: Checked): void {
  const { problems, schema, value, place } = checked;
  const inner = [...above, ...issue.path.map((step) => (typeof step === "symbol" ? String(step) : step))];
  const path = [...place, ...inner];
  const found = valueAt(value, inner);
  // To the API server null is absent, so a required field that is null is missing.
  const missing = found === undefined || found === null;
  if (!isPlain(issue.message)) {
    problems.push(problem(path, issue.message));
    return;
  }
  switch (issue.code) {
    case "unrecognized_keys":
      addUnknownFields(problems, path, issue.keys, () => fieldsAt(schema, inner));
      return;
    case "invalid_value":
      problems.push(wrongValue(path, issue.values.map(String), found));
      return;
    case "invalid_type": {
      const noun = nounOf(issue.expected, () => schemasAt(schema, inner));
      if (missing) problems.push(problem(path, `is missing: ${noun} is required`));
      else
        problems.push({
          ...problem(path, `must be ${noun}, got ${shown(found)}`),
          ...quotes(issue.expected, found),
        });
      return;
    }
    case "too_small":
    case "too_big":
      problems.push(problem(path, boundMessage(issue, found)));
      return;
    case "invalid_format":
      problems.push(problem(path, `invalid value ${shown(found)}: must match ${formOf(issue)}`));
      return;
    case "invalid_key":
      problems.push(problem(path, `invalid key: ${issue.issues.map(({ message }) => message).join(", ")}`));
      return;
    case "invalid_union":
      addUnion(issue, inner, checked);
      return;
    default:
      problems.push(problem(path, issue.message));
  }
}

/** Whether a message is zod's own. A message of the schema is more specific than the cases here. */
function isPlain(message: string): boolean {
  return /^(Invalid |Too (big|small): |Unrecognized key)/.test(message);
}

/** Only listed problems get a suggestion: each takes a comparison with every known field. */
export function addUnknownFields(
  problems: ProblemList,
  path: Path,
  keys: readonly string[],
  knownFields: () => readonly string[],
): void {
  const listed = keys.slice(0, problems.room("warning"));
  problems.omit("warning", keys.length - listed.length);
  if (listed.length === 0) return;
  const known = knownFields();
  for (const key of listed) {
    const meant = sameButCase(key, known);
    problems.push({
      ...likelyMistake([...path, key], "unknown field, has no effect", didYouMean(key, known)),
      pruned: true,
      ...(meant === undefined ? {} : { fix: { rename: meant } }),
    });
  }
}

function wrongValue(path: Path, values: readonly string[], found: Json | undefined): Problem {
  // An empty choice only allows the field to be empty.
  const allowed = values.filter((value) => value !== "");
  const choice = allowed.length === 1 ? allowed.join("") : `one of ${allowed.join(", ")}`;
  if (found === undefined || found === null) return problem(path, `is missing: ${choice} is required`);
  const hint = typeof found === "string" ? didYouMean(found, allowed) : booleanHint(found);
  const meant = typeof found === "string" ? sameButCase(found, allowed) : undefined;
  return {
    ...problem(path, `unsupported value ${shown(found)}: must be ${choice}`, hint),
    ...(meant === undefined ? {} : { fix: { set: meant } }),
  };
}

/** The one known word that differs only by upper and lower case. */
function sameButCase(word: string, known: readonly string[]): string | undefined {
  const alike = known.filter((one) => one !== word && one.toLowerCase() === word.toLowerCase());
  return alike.length === 1 ? alike[0] : undefined;
}

/** For a boolean in place of a word: YAML 1.1, which kubectl and Helm read, has several words for it. */
function booleanHint(found: Json): string | undefined {
  return typeof found === "boolean" ? "YAML reads On, Off, Yes and No without quotes as booleans" : undefined;
}

/**
 * Each alternative failed. If one accepts the value's type and only something inside is wrong, that one was meant;
 * otherwise all types are named.
 */
function addUnion(issue: z.core.$ZodIssueInvalidUnion, inner: Path, checked: Checked): void {
  const { problems, schema, value, place } = checked;
  const near = issue.errors.find((list) => !list.some((one) => isOfType(one)));
  if (near !== undefined && near.length > 0) {
    for (const one of near) addIssue(one, inner, checked);
    return;
  }
  const found = valueAt(value, inner);
  const here = () => schemasAt(schema, inner);
  const nouns = issue.errors.flatMap((list) =>
    list.flatMap((one) => (one.code === "invalid_type" ? [nounOf(one.expected, here)] : [])),
  );
  const choice = nouns.length === 0 ? "of another form" : [...new Set(nouns)].join(" or ");
  const path = [...place, ...inner];
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
    if (small && bound === 1) return "must have at least one item";
    return `must have ${least} ${bound} items`;
  }
  if (issue.origin === "string") {
    if (small && bound === 1) return "must not be empty";
    return `${shown(found)} must have ${least} ${bound} characters`;
  }
  const limit = issue.inclusive === false ? (small ? "more than" : "less than") : least;
  return `must be ${limit} ${bound}, got ${shown(found)}`;
}

function formOf(issue: z.core.$ZodIssueInvalidStringFormat): string {
  return issue.format === "regex" && issue.pattern !== undefined ? issue.pattern : issue.format;
}

/** YAML reads an unquoted `true` or `8` as a boolean or a number, and a quoted number as a string. */
function quotes(expected: string, found: Json | undefined): Pick<Problem, "hint" | "fix"> {
  if (expected === "string" && (typeof found === "number" || typeof found === "boolean"))
    return { hint: WRITE_IN_QUOTES, fix: { quote: true } };
  const number = expected === "number" || expected === "int";
  if (number && typeof found === "string" && /^-?[0-9]{1,15}$/.test(found))
    return { hint: "write it without quotes", fix: { set: Number(found) } };
  return {};
}

/** Enough to recognise a value in a message. */
const SHOWN_CHARACTERS = 60;

export function shown(value: Json | undefined): string {
  const text = JSON.stringify(value ?? null);
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}

/** For an integer zod expects a number first, and then an integer; `here` are the schemas of the path. */
function nounOf(expected: string, here: () => readonly Inner[]): string {
  if (expected === "number" && here().some(({ isInt }) => isInt)) return nounOf("int", here);
  const nouns: Record<string, string> = {
    record: "an object",
    object: "an object",
    array: "a list",
    string: "a string",
    int: "an integer",
    number: "a number",
    boolean: "a boolean",
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

/** The fields that the schema has at a path, for "did you mean". */
function fieldsAt(schema: z.ZodType, path: Path): string[] {
  return [...new Set(schemasAt(schema, path).flatMap((one) => Object.keys(one.shape ?? {})))];
}

function schemasAt(schema: z.ZodType, path: Path): Inner[] {
  let here = alternatives(schema);
  for (const step of path) here = here.flatMap((one) => alternatives(inside(one, step)));
  return here;
}

/** The parts of a zod schema that lead to nested schemas. zod's classes have no common type for it. */
interface Inner {
  readonly shape?: Readonly<Record<string, unknown>>;
  readonly element?: unknown;
  readonly valueType?: unknown;
  readonly options?: readonly unknown[];
  readonly in?: unknown;
  readonly out?: unknown;
  readonly isInt?: boolean;
  readonly unwrap?: () => unknown;
}

function inside(schema: Inner, step: string | number): unknown {
  if (typeof step === "number") return schema.element;
  return schema.shape !== undefined && Object.hasOwn(schema.shape, step)
    ? schema.shape[step]
    : schema.valueType;
}

/** The schemas that a value may have to match: optional ones unwrapped, the sides of a pipe and of a union one by one. */
function alternatives(schema: unknown): Inner[] {
  if (typeof schema !== "object" || schema === null) return [];
  const here: Inner = schema;
  if (here.element !== undefined) return [here];
  if (typeof here.unwrap === "function") return alternatives(here.unwrap());
  if (Array.isArray(here.options)) return here.options.flatMap(alternatives);
  if (here.in !== undefined) return [...alternatives(here.in), ...alternatives(here.out)];
  return [here];
}
