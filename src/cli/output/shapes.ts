import { z } from "zod";
import { EFFECTS } from "../../core/foresight/compare.ts";
import { OUTPUT_VERSION } from "./versioned.ts";

/**
 * The JSON that commands of usher itself print, by kind; modules have those of their commands in `shape`. Published as JSON Schemas in
 * `schemas/`. Strict: the tests compare every command's real output with them.
 */

const names = z.array(z.string());
const json = z.json();
const object = z.strictObject({
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string().describe("Empty for cluster-scoped objects."),
  name: z.string(),
});

/** Problems of the input or the source. */
export const problem = z.strictObject({
  from: z.enum(["input", "source"]),
  file: z.string(),
  line: z.int().optional().describe("From one; absent where the file itself is the problem."),
  column: z.int().optional(),
  severity: z.enum(["error", "warning"]),
  code: z.string().describe("Explained by usher help CODE."),
  message: z.string(),
  hint: z.string().optional(),
  object: z.string().optional(),
});
const problems = z.array(problem);

const patch = z.array(
  z.strictObject({ op: z.enum(["add", "remove", "replace"]), path: z.string(), value: json.optional() }),
);
const changes = z.array(
  z.strictObject({
    module: z.string(),
    policy: z.string(),
    change: z.enum(["add", "change", "remove"]),
    path: z.string(),
    message: z.string(),
  }),
);
const violations = z.array(
  z.strictObject({
    module: z.string(),
    policy: z.string(),
    rule: z.string(),
    code: z.string(),
    path: z.string(),
    message: z.string(),
  }),
);

const result = {
  object,
  verdict: z.enum(["allow", "patch", "deny"]).describe("patch: allowed, with changes."),
  patch: patch.describe("JSON Patch against the object with the API server's defaults."),
  changes,
  violations,
  warnings: names,
  audit: z.record(z.string(), z.string()).describe("Audit annotations."),
  unknown: names.describe("What the decision needed and the source does not contain."),
  podViolations: violations.optional().describe("Why pods of an allowed workload are denied."),
  trace: z
    .array(
      z.strictObject({
        module: z.string(),
        kind: z.string(),
        policy: z.string(),
        rule: z.string().optional(),
        applies: z.enum(["applies", "not", "partly", "refuses", "failed"]),
        why: z.string(),
        parts: names,
      }),
    )
    .optional()
    .describe("With --trace: every policy."),
  untouched: z.string().optional(),
};

const side = z.strictObject({
  refused: z.boolean(),
  violations,
  changes,
  warnings: names,
  unknown: names,
});
const lines = z.array(z.strictObject({ sign: z.enum(["+", "-"]), message: z.string(), by: z.string() }));
const difference = {
  object,
  effect: z.enum(EFFECTS),
  before: side.optional(),
  after: side.optional(),
  lines,
};
const reach = z.strictObject({
  fits: z.int(),
  unknown: z.int(),
  total: z.int(),
  summary: z.string(),
  rejected: z.array(z.strictObject({ reason: z.string(), nodes: z.int() })),
  notes: names,
});
const standing = z.array(
  z.strictObject({
    object: z.strictObject({ kind: z.string(), namespace: z.string().optional(), name: z.string() }),
    effect: z.enum(["changed", "new", "gone", "over its limit", "within its limit"]),
    lines,
  }),
);
const edits = z.array(z.strictObject({ name: z.string(), what: z.string() }));
const beforeAfter = z.strictObject({ before: z.int(), after: z.int() });
const files = z.array(z.looseObject({ file: z.string(), message: z.string() }));

const foresight = z.strictObject({
  edits,
  summary: z.record(z.string(), z.int()),
  workloads: z.array(
    z.strictObject({
      ...difference,
      pods: z.int(),
      nodes: z
        .strictObject({
          before: reach.optional(),
          after: reach.optional(),
          gained: names,
          lost: z.array(z.strictObject({ node: z.string(), reason: z.string() })),
        })
        .optional(),
    }),
  ),
  nodes: standing,
  users: standing,
  pools: z.array(
    z.strictObject({
      pool: z.string(),
      nodes: beforeAfter,
      workloads: beforeAfter,
      effect: z.enum(["empties", "fills", "changed"]),
    }),
  ),
  notAdmitted: z.array(z.strictObject({ object, pods: z.int() })),
  looked: z.strictObject({ workloads: z.int(), pods: z.int(), nodes: z.int() }),
  unknown: names,
  serverDryRun: z.array(
    z.strictObject({
      name: z.string(),
      result: z.enum(["admitted", "refused", "not judged"]),
      changes: z.array(z.strictObject({ message: z.string(), by: z.string() })),
    }),
  ),
  partial: names.describe("What could not be read."),
  problems: files,
});

const explanation = z.strictObject({
  object,
  set: z.array(
    z.strictObject({
      field: z.string(),
      value: json,
      module: z.string(),
      policy: z.string(),
      generation: z.int().optional(),
      generationNow: z.int().optional(),
      when: z.string().optional(),
      today: z.string(),
    }),
  ),
  today: z.strictObject(result),
  nodes: z.looseObject({}).optional().describe("Where its pods may run, by the scheduler's filters."),
  refusals: z.array(z.looseObject({})),
  before: z.looseObject({}).describe("The object without what usher put there."),
  now: z.looseObject({}),
});

/** Every shape, by the kind of its output. */
export const SHAPES: Readonly<Record<string, z.ZodObject>> = {
  Review: z.strictObject({
    results: z.array(
      z.strictObject({ ...result, file: z.string(), line: z.int().describe("Where the object begins.") }),
    ),
    summary: z.strictObject({ allowed: z.int(), unchanged: z.int(), patched: z.int(), denied: z.int() }),
    problems,
  }),
  Lint: z.strictObject({
    problems: z.array(problem.omit({ from: true })),
    summary: z.strictObject({
      files: z.int(),
      objects: z.int(),
      errors: z.int(),
      warnings: z.int(),
      fixable: z.int(),
      fixed: z.int(),
    }),
  }),
  Compile: z.strictObject({
    policies: z.array(
      z.strictObject({
        module: z.string(),
        kind: z.string(),
        namespace: z.string().optional(),
        name: z.string(),
        result: z.enum(["whole", "in part", "not"]),
        objects: z.array(z.strictObject({ kind: z.string(), name: z.string() })),
        leftOut: z.array(z.strictObject({ what: z.string(), why: z.string() })),
        cost: z.int().optional().describe("The estimated cost of its most expensive expression."),
      }),
    ),
    summary: z.strictObject({ policies: z.int(), whole: z.int(), inPart: z.int(), not: z.int() }),
  }),
  Diff: foresight,
  WhatIf: foresight,
  Replay: z.strictObject({
    edits,
    summary: z.record(z.string(), z.int()),
    differences: z.array(
      z.strictObject({
        ...difference,
        operation: z.enum(["CREATE", "UPDATE", "DELETE", "CONNECT"]),
        user: z.string(),
        when: z.string().optional(),
      }),
    ),
    skipped: z.array(z.strictObject({ reason: z.string(), count: z.int() })),
    problems: files,
  }),
  Explain: explanation,
  ExplainList: z.strictObject({ items: z.array(explanation) }),
  Test: z.strictObject({
    suites: z.array(
      z.strictObject({
        file: z.string(),
        cases: z.array(
          z.strictObject({
            name: z.string(),
            line: z.int(),
            result: z.enum(["passed", "failed", "error"]),
            verdict: z.string().optional(),
            mismatches: z.array(
              z.strictObject({ path: z.string(), expected: json.optional(), real: json.optional() }),
            ),
            diff: z.string().optional(),
            trace: z.array(z.looseObject({})).optional(),
            problems,
          }),
        ),
        problems,
        score: z.number().optional().describe("With --mutate: the share of mutants that a case notices."),
        mutants: z.array(z.looseObject({ path: z.string() })).optional(),
      }),
    ),
    summary: z.strictObject({ cases: z.int(), passed: z.int(), failed: z.int(), errors: z.int() }),
  }),
  Writes: z.strictObject({
    results: z.array(
      z.strictObject({
        object: z.strictObject({ kind: z.string(), namespace: z.string().optional(), name: z.string() }),
        result: z.string(),
        changes: names,
        warnings: names.optional(),
        why: z.string().optional(),
      }),
    ),
    summary: z.record(z.string(), z.int()),
  }),
};

/** A shape with the lines that every output begins with. `problems`: of --source, beside the data of a module's command. */
export function outputShape(kind: string, shape: z.ZodObject): z.ZodObject {
  return z.strictObject({
    apiVersion: z.literal(OUTPUT_VERSION),
    kind: z.literal(kind),
    ...shape.shape,
    ...(kind in SHAPES ? {} : { problems: problems.optional() }),
  });
}
