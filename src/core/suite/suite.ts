import { z } from "zod";
import { isObject, type Json, type JsonObject, setOwn, stringAt } from "../json.ts";
import type { Path } from "../path.ts";
import { parseFieldPath } from "../path.ts";
import { addSchemaProblems } from "../policy/check-schema.ts";
import { type Problem, problem } from "../policy/problem.ts";
import { ProblemList } from "../policy/problem-list.ts";
import { didYouMean } from "../suggest.ts";

export const SUITE = { apiVersion: "usher.dev/v1alpha1", kind: "TestSuite" } as const;

/** More cases than a user or a pull request can follow; a cluster of 5,000 workloads is recorded in one suite. */
export const MAX_CASES = 10_000;

const NAME_LENGTH = 256;
const TEXT_LENGTH = 4_096;
const LIST_LENGTH = 256;

const text = z.string().min(1).max(TEXT_LENGTH);
const manifest = z.looseObject({});
const fileName = z.string().min(1).max(TEXT_LENGTH);
const fieldName = z
  .string()
  .max(TEXT_LENGTH)
  .refine((path) => parseFieldPath(path) !== undefined, {
    error: "must be the path of a field, such as spec.nodeSelector[topology.kubernetes.io/zone]",
  });
const files = z.array(fileName).min(1).max(LIST_LENGTH);

const fromFile = z.strictObject({
  file: fileName.describe("A file of manifests or recorded AdmissionReviews, relative to the suite."),
  kind: text.optional().describe("Selects the object by its kind."),
  namespace: text.optional().describe("Selects the object by its namespace."),
  name: text.optional().describe("Selects the object by its name."),
});

const event = z.strictObject({
  reason: text.describe("The reason of the event."),
  type: z.enum(["Normal", "Warning"]).optional().describe("The type of the event."),
  message: text.optional().describe("A part of the event's message."),
});

const cause = z
  .strictObject({
    reason: text.optional().describe("The reason of the cause: usually a code."),
    field: text.optional().describe("The field of the cause."),
    message: text.optional().describe("A part of the cause's message."),
  })
  .refine((one) => Object.keys(one).length > 0, { error: "must have a reason, a field or a message" });

const expectation = z.strictObject({
  verdict: z
    .enum(["allow", "patch", "deny", "unjudged"])
    .describe(
      "allow: admitted as it is. patch: admitted with changes. deny: refused. unjudged: no module evaluates the request.",
    ),
  pods: z
    .enum(["allow", "deny"])
    .optional()
    .describe("Of a workload: whether the pods of its template are admitted. Defaults to allow."),
  fields: z
    .record(fieldName, z.unknown())
    .refine((fields) => Object.keys(fields).length > 0, { error: "must have at least one field" })
    .refine((fields) => !Object.values(fields).includes(null), {
      error: "null is not a value: list the path under removed or untouched",
    })
    .optional()
    .describe("Fields that usher sets, by path, with their values in the result."),
  removed: z.array(fieldName).min(1).max(LIST_LENGTH).optional().describe("Fields that usher removes."),
  untouched: z
    .array(fieldName)
    .min(1)
    .max(LIST_LENGTH)
    .optional()
    .describe("Fields that usher leaves as they are in the input, set or absent."),
  object: manifest
    .optional()
    .describe("The whole object in the result, without defaults of the API server and without provenance."),
  warnings: z
    .array(text)
    .max(LIST_LENGTH)
    .optional()
    .describe("A part of each warning; the list is complete, and empty where there is no warning."),
  codes: z
    .array(text)
    .max(LIST_LENGTH)
    .optional()
    .describe("The codes of all findings; the list is complete."),
  events: z.array(event).max(LIST_LENGTH).optional().describe("The events; the list is complete."),
  causes: z
    .array(cause)
    .max(LIST_LENGTH)
    .optional()
    .describe("The causes of a refusal; the list is complete."),
});

const caseSchema = z.strictObject({
  name: z.string().min(1).max(NAME_LENGTH).describe("What the case shows: a statement."),
  each: z
    .unknown()
    .optional()
    .describe("Rows of variables: the case runs once for each, with variables replaced in all its strings."),
  object: manifest.optional().describe("The object of the request, or a recorded AdmissionReview."),
  objectFrom: fromFile.optional().describe("The same, from a file."),
  old: manifest.optional().describe("The stored object of an UPDATE."),
  oldFrom: fromFile.optional().describe("The same, from a file."),
  operation: z
    .enum(["CREATE", "UPDATE", "DELETE", "RECONCILE"])
    .optional()
    .describe(
      "The operation of the request, or RECONCILE for a node that exists: the result is the node once controllers have made their changes. Defaults to UPDATE where the stored object is given, else to CREATE.",
    ),
  namespace: text.optional().describe("The namespace of an object without one. Defaults to default."),
  user: text.optional().describe("Who sends the request. Defaults to kubernetes-admin."),
  groups: z.array(text).max(LIST_LENGTH).optional().describe("The groups of the user."),
  time: z.iso.datetime({ offset: true }).optional().describe("When the request is sent. Defaults to now."),
  source: files.optional().describe("Files in place of the suite's source."),
  expect: expectation.optional().describe("The expected decision."),
});

const equivalent = z.strictObject({
  policy: text.describe("KIND/NAME, or KIND/NAMESPACE/NAME."),
  path: z
    .string()
    .max(TEXT_LENGTH)
    .optional()
    .describe("The path of the mutant. Absent: the removed policy."),
  change: text.optional().describe("The change of the mutant. Defaults to all changes at the path."),
  reason: text.describe("Why no case can notice the mutant."),
});

/** Everything but the cases, which are checked one by one. */
const suiteSchema = z.strictObject({
  apiVersion: z.literal(SUITE.apiVersion),
  kind: z.literal(SUITE.kind),
  metadata: z
    .strictObject({ name: text.describe("The name of the suite.") })
    .optional()
    .describe("The name of the suite, for its readers."),
  source: files.describe(
    "Files and directories with the policies under test and the objects that they need, relative to the suite.",
  ),
  objects: z
    .array(manifest)
    .min(1)
    .max(LIST_LENGTH)
    .optional()
    .describe("Objects beside those of the source that cases need, such as namespaces and nodes."),
  config: fileName.optional().describe("A file with an UsherConfiguration, relative to the suite."),
  policies: z
    .array(text)
    .min(1)
    .max(LIST_LENGTH)
    .optional()
    .describe("The policies under test, as KIND/NAME or KIND/NAMESPACE/NAME. Defaults to all of the source."),
  cases: z.array(z.unknown()).min(1).max(MAX_CASES).describe("The cases."),
  equivalent: z
    .array(equivalent)
    .min(1)
    .max(LIST_LENGTH)
    .optional()
    .describe("Mutants that no case can notice, with the reason."),
});

/** As it is written: a variable may stand where a row of the case's table has the value. */
function orVariable<Schema extends z.ZodType>(schema: Schema) {
  return z.union([schema, z.string().regex(/\$\{/)]).describe(schema.description ?? "");
}

const { operation, time, expect } = caseSchema.shape;
const { verdict, pods } = expectation.shape;
const writtenCase = caseSchema.extend({
  operation: orVariable(operation),
  time: orVariable(time),
  expect: expectation
    .extend({ verdict: orVariable(verdict), pods: orVariable(pods) })
    .optional()
    .describe(expect.description ?? ""),
});

/** The fields of a suite beside its apiVersion and kind, for the schema of editors. */
export const suiteFields = suiteSchema
  .omit({ apiVersion: true, kind: true })
  .extend({ cases: z.array(writtenCase).min(1).max(MAX_CASES).describe("The cases.") });

export type FromFile = z.infer<typeof fromFile>;
export type Expectation = z.infer<typeof expectation>;
export type Equivalent = z.infer<typeof equivalent>;
type WrittenCase = z.infer<typeof caseSchema>;

/** One case, with the variables of its row. */
export interface Case extends Omit<WrittenCase, "each" | "expect"> {
  /** Which entry of `cases` it is. */
  readonly index: number;
  /** The variables that the expectation uses differ by row: it is not recorded by `--update`. */
  readonly fromTable: boolean;
  readonly expect: Expectation | undefined;
}

export interface Suite {
  readonly source: readonly string[];
  readonly objects: readonly JsonObject[];
  readonly config: string | undefined;
  readonly policies: readonly string[] | undefined;
  readonly cases: readonly Case[];
  readonly equivalent: readonly Equivalent[];
}

/** Whether a document is a suite, right or wrong. */
export function isSuite(value: Json): boolean {
  return (
    stringAt(value, "kind") === SUITE.kind && (stringAt(value, "apiVersion") ?? "").startsWith("usher.dev/")
  );
}

/** A suite of a document, or its problems. `recording`: cases may omit their expectation. */
export function readSuite(
  document: JsonObject,
  { recording = false }: { readonly recording?: boolean } = {},
): { readonly suite: Suite } | { readonly problems: readonly Problem[] } {
  const problems = new ProblemList();
  const { cases, ...head } = document;
  const counted = Array.isArray(cases) ? { ...head, cases: cases.map(() => null) } : document;
  addSchemaProblems(problems, suiteSchema, counted, []);
  const written = Array.isArray(cases) ? cases : [];
  const expanded = written
    .slice(0, MAX_CASES)
    .flatMap((one: Json, index) => casesOf(one, index, problems, recording));
  if (expanded.length > MAX_CASES)
    problems.push(problem(["cases"], `come to ${expanded.length} cases: at most ${MAX_CASES} are allowed`));
  const seen = new Set<string>();
  for (const { name, index } of expanded) {
    if (seen.has(name))
      problems.push(problem(["cases", index, "name"], `${JSON.stringify(name)} is the name of another case`));
    seen.add(name);
  }
  const found = problems.all([]).map((one): Problem => asError(one));
  if (found.length > 0) return { problems: found };
  const {
    source,
    objects = [],
    config,
    policies,
    equivalent: accepted,
  } = document as unknown as z.infer<typeof suiteSchema>;
  const suite = { source, objects: objects as readonly JsonObject[], config, policies, cases: expanded };
  return { suite: { ...suite, equivalent: accepted ?? [] } };
}

/** An unknown field of a suite is an expectation that nothing checks. */
function asError({ path, message, hint }: Problem): Problem {
  return problem(path, message.replace(", has no effect", ""), hint);
}

function casesOf(value: Json, index: number, problems: ProblemList, recording: boolean): Case[] {
  const place: Path = ["cases", index];
  if (!isObject(value)) {
    problems.push(problem(place, "must be an object"));
    return [];
  }
  const { each, ...template } = value;
  const rows = rowsOf(each, place, problems);
  if (rows === undefined) return [];
  const used = new Set<string>();
  const said = new Set<string>();
  const cases: Case[] = [];
  for (const [i, row] of rows.entries()) {
    const own = new ProblemList();
    const filled = substituted(template, row, [], used, own) as JsonObject;
    addSchemaProblems(own, caseSchema, filled, []);
    const known = own.all([]);
    const wrong = known.length > 0 ? known : contradictions(filled as unknown as WrittenCase, recording);
    for (const one of wrong) {
      const key = `${JSON.stringify(one.path)} ${one.message}`;
      if (!said.has(key)) problems.push({ ...one, path: [...place, ...one.path] });
      said.add(key);
    }
    if (wrong.length > 0) continue;
    const { each: _, expect, ...rest } = filled as unknown as WrittenCase;
    const numbered = rows.length > 1 && rest.name === template["name"] ? ` #${i + 1}` : "";
    cases.push({ ...rest, name: `${rest.name}${numbered}`, index, fromTable: each !== undefined, expect });
  }
  for (const name of Object.keys(rows[0] ?? {}))
    if (!used.has(name))
      problems.push(problem([...place, "each", 0, name], `the variable ${name} is not used in the case`));
  return cases;
}

type Row = Readonly<Record<string, Json>>;

/** The rows of a table, all with the same variables. A case without a table has one row without variables. */
function rowsOf(each: Json | undefined, place: Path, problems: ProblemList): readonly Row[] | undefined {
  if (each === undefined) return [{}];
  const path = [...place, "each"];
  if (!Array.isArray(each) || each.length === 0 || !each.every(isObject)) {
    problems.push(problem(path, "must be a list of rows, each with the same variables"));
    return undefined;
  }
  if (each.length > MAX_CASES) {
    problems.push(problem(path, `has ${each.length} rows: at most ${MAX_CASES} are allowed`));
    return undefined;
  }
  const names = Object.keys(each[0] ?? {}).sort();
  if (names.length === 0 || !names.every((name) => VARIABLE_NAME.test(name))) {
    problems.push(problem([...path, 0], "must have variables whose names are letters, digits and _"));
    return undefined;
  }
  for (const [i, row] of each.entries()) {
    if (Object.keys(row).sort().join() === names.join()) continue;
    problems.push(problem([...path, i], `must have the variables of the first row: ${names.join(", ")}`));
    return undefined;
  }
  return each as readonly Row[];
}

const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
const VARIABLE = /\$?\$\{([^}]*)\}/g;

/** A value with variables replaced. A string that is one variable becomes its value; `$${` stands for `${`. */
function substituted(value: Json, row: Row, path: Path, used: Set<string>, problems: ProblemList): Json {
  if (typeof value === "string") return filledText(value, row, path, used, problems);
  if (Array.isArray(value))
    return value.map((item, i) => substituted(item, row, [...path, i], used, problems));
  if (!isObject(value)) return value;
  const copy: Record<string, Json | undefined> = {};
  for (const [key, member] of Object.entries(value)) {
    const name = filledText(key, row, [...path, key], used, problems);
    setOwn(
      copy,
      typeof name === "string" ? name : JSON.stringify(name),
      substituted(member ?? null, row, [...path, key], used, problems),
    );
  }
  return copy;
}

function filledText(value: string, row: Row, path: Path, used: Set<string>, problems: ProblemList): Json {
  if (!value.includes("${")) return value;
  const whole = /^\$\{([^}]*)\}$/.exec(value)?.[1];
  const variable = (name: string): Json => {
    used.add(name);
    const found = Object.hasOwn(row, name) ? row[name] : undefined;
    if (found !== undefined) return found;
    const known = Object.keys(row);
    const hint = didYouMean(name, known) ?? "define it in each, or write $${ for ${";
    problems.push(problem(path, `the variable ${JSON.stringify(name)} is not defined`, hint));
    return "";
  };
  if (whole !== undefined) return variable(whole);
  return value.replaceAll(VARIABLE, (found, name: string) => {
    if (found.startsWith("$$")) return found.slice(1);
    const one = variable(name);
    return typeof one === "string" ? one : JSON.stringify(one);
  });
}

/** Fields of a case that exclude or need each other. */
function contradictions(one: WrittenCase, recording: boolean): Problem[] {
  const problems: Problem[] = [];
  if ((one.object === undefined) === (one.objectFrom === undefined))
    problems.push(problem([], "must have either object or objectFrom"));
  if (one.old !== undefined && one.oldFrom !== undefined)
    problems.push(problem(["oldFrom"], "can't be combined with old"));
  if ((one.old ?? one.oldFrom) !== undefined && one.operation !== undefined && one.operation !== "UPDATE")
    problems.push(
      problem(["operation"], `must be UPDATE where a stored object is given, got ${one.operation}`),
    );
  if (one.expect === undefined && !recording)
    problems.push(problem([], "expect is missing: write the expected decision, or record it with --update"));
  const { expect } = one;
  if (expect === undefined) return problems;
  const result = (["fields", "removed", "untouched", "object"] as const).find(
    (field) => expect[field] !== undefined,
  );
  if (result !== undefined && (expect.verdict === "deny" || expect.verdict === "unjudged"))
    problems.push(
      problem(["expect", result], `has no effect: verdict ${expect.verdict} has no resulting object`),
    );
  if (expect.verdict === "allow" && (expect.fields ?? expect.removed ?? expect.object) !== undefined)
    problems.push(problem(["expect", "verdict"], "allow means that usher changes nothing: write patch"));
  if (expect.causes !== undefined && expect.verdict !== "deny")
    problems.push(problem(["expect", "causes"], `has no effect: verdict ${expect.verdict} has no causes`));
  return problems;
}

/** The operation of a case. */
export function operationOf(one: Case): NonNullable<Case["operation"]> {
  return one.operation ?? ((one.old ?? one.oldFrom) === undefined ? "CREATE" : "UPDATE");
}
