import { describe, expect, test } from "vitest";
import { z } from "zod";
import { kindOf } from "../../../test/builders/kind.ts";
import type { Json, JsonObject } from "../json.ts";
import {
  affinity,
  labelMap,
  labelSelector,
  toleration,
  topologySpreadConstraint,
} from "../kubernetes/schemas.ts";
import { Store } from "../view/store.ts";
import { checkObject, versionOf } from "./check.ts";
import type { Kind } from "./kind.ts";
import { describeProblem, problem } from "./problem.ts";
import { MAX_PROBLEMS } from "./problem-list.ts";

const VIEW = new Store(new Map());

const SPEC = z.strictObject({
  podSelector: labelSelector.nullish(),
  nodeSelector: labelMap.nullish(),
  affinity: affinity.nullish(),
  tolerations: z.array(toleration).max(2).nullish(),
  spread: z.array(topologySpreadConstraint).nullish(),
  mode: z.enum(["strict", "lenient"]),
  port: z.union([z.int().min(1), z.string().max(5)]).nullish(),
  source: z.union([z.strictObject({ file: z.string() }), z.string()]).nullish(),
  pattern: z
    .string()
    .regex(/^[a-z]+$/)
    .nullish(),
  secret: z.string().regex(/^x/, { error: "must begin with an x" }).nullish(),
  share: z.number().gt(0).lt(1).nullish(),
  code: z.string().min(3).nullish(),
  named: z.record(z.string().max(2), z.strictObject({ size: z.int() })).nullish(),
  trimmed: z.preprocess((value) => value, z.strictObject({ width: z.int().optional() })).nullish(),
});

const KIND = kindOf("test.usher.dev", "Sample", { versions: [{ name: "v1", spec: SPEC, storage: true }] });

function object(spec: Json, more: JsonObject = {}): JsonObject {
  return { apiVersion: "test.usher.dev/v1", kind: "Sample", metadata: { name: "one" }, spec, ...more };
}

function said(found: JsonObject, kind = KIND): string[] {
  return checkObject(kind, found, VIEW).map((one) => `${one.severity}: ${describeProblem(one)}`);
}

function specSaid(spec: JsonObject): string[] {
  return said(object({ mode: "strict", ...spec }));
}

test("an object that is right has no problems", () => {
  expect(
    specSaid({
      podSelector: { matchLabels: { app: "etcd" }, matchExpressions: [{ key: "a", operator: "Exists" }] },
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["n"] }] }],
          },
          preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference: {} }],
        },
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            {
              labelSelector: {},
              topologyKey: "zone",
              namespaces: ["a"],
              namespaceSelector: {},
              matchLabelKeys: ["pod-template-hash"],
              mismatchLabelKeys: ["tenant"],
            },
          ],
        },
        podAntiAffinity: {},
      },
      tolerations: [
        { key: "a", operator: "", effect: "" },
        { operator: "Exists", tolerationSeconds: -1 },
      ],
      spread: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway" }],
    }),
  ).toEqual([]);
});

test("null counts as absent, also in nested fields", () => {
  const tolerations = [{ key: null, operator: "Exists", value: null, effect: null, tolerationSeconds: null }];
  const podSelector = {
    matchLabels: null,
    matchExpressions: [{ key: "a", operator: "Exists", values: null }],
  };
  expect(specSaid({ podSelector, nodeSelector: null, affinity: null, tolerations })).toEqual([]);
});

describe("problems of a spec", () => {
  const cases: [string, JsonObject, string[]][] = [
    [
      "an unknown field at the top",
      { nodeselector: {} },
      ['warning: spec.nodeselector: unknown field, has no effect; did you mean "nodeSelector"?'],
    ],
    [
      "an unknown field deep inside",
      {
        affinity: {
          podAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: "a", labelselector: {} }],
          },
        },
      },
      [
        "warning: spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelselector: " +
          'unknown field, has no effect; did you mean "labelSelector"?',
      ],
    ],
    [
      "an unknown field that resembles no known one",
      { tolerations: [{ operator: "Exists", wobble: 1 }] },
      ["warning: spec.tolerations[0].wobble: unknown field, has no effect"],
    ],
    [
      "an unknown field in a map's value, in a union and behind a pipe",
      { named: { a: { size: 1, sice: 1 } }, source: { file: "f", flie: "f" }, trimmed: { widht: 1 } },
      [
        'warning: spec.source.flie: unknown field, has no effect; did you mean "file"?',
        'warning: spec.named.a.sice: unknown field, has no effect; did you mean "size"?',
        'warning: spec.trimmed.widht: unknown field, has no effect; did you mean "width"?',
      ],
    ],
    [
      "a wrong operator",
      { tolerations: [{ key: "a", operator: "Exist" }] },
      [
        'error: spec.tolerations[0].operator: unsupported value "Exist": must be one of Exists, Equal, Lt, Gt; did you mean "Exists"?',
      ],
    ],
    [
      "a node operator in a label selector",
      { podSelector: { matchExpressions: [{ key: "a", operator: "Gt", values: ["1"] }] } },
      [
        'error: spec.podSelector.matchExpressions[0].operator: unsupported value "Gt": must be one of In, NotIn, Exists, DoesNotExist',
      ],
    ],
    [
      "a missing operator and key",
      { podSelector: { matchExpressions: [{}] } },
      [
        "error: spec.podSelector.matchExpressions[0].key: is missing: a string is required",
        "error: spec.podSelector.matchExpressions[0].operator: is missing: one of In, NotIn, Exists, DoesNotExist is required",
      ],
    ],
    [
      "null for a required field",
      { spread: [{ maxSkew: null, topologyKey: null, whenUnsatisfiable: null }] },
      [
        "error: spec.spread[0].maxSkew: is missing: an integer is required",
        "error: spec.spread[0].topologyKey: is missing: a string is required",
        "error: spec.spread[0].whenUnsatisfiable: is missing: one of DoNotSchedule, ScheduleAnyway is required",
      ],
    ],
    [
      "a label value that YAML reads as a boolean or a number",
      { nodeSelector: { gpu: true, size: 8 } },
      [
        "error: spec.nodeSelector.gpu: must be a string, got true; write it in quotes",
        "error: spec.nodeSelector.size: must be a string, got 8; write it in quotes",
      ],
    ],
    [
      "a number in quotes",
      { tolerations: [{ tolerationSeconds: "60" }] },
      ['error: spec.tolerations[0].tolerationSeconds: must be an integer, got "60"; write it without quotes'],
    ],
    [
      "a fraction",
      { tolerations: [{ tolerationSeconds: 1.5 }] },
      ["error: spec.tolerations[0].tolerationSeconds: must be an integer, got 1.5"],
    ],
    [
      "an object for a list, and a long one",
      { tolerations: { key: "a".repeat(80) } },
      [`error: spec.tolerations: must be a list, got {"key":"${"a".repeat(52)}…`],
    ],
    [
      "a weight out of bounds",
      {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 101, preference: {} }],
          },
        },
      },
      [
        "error: spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: " +
          "must be at most 100, got 101",
      ],
    ],
    [
      "no terms at all",
      {
        affinity: {
          nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
        },
      },
      [
        "error: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: " +
          "must have at least one item",
      ],
    ],
    ["too many items", { tolerations: [{}, {}, {}] }, ["error: spec.tolerations: must have at most 2 items"]],
    [
      "too many labels",
      { nodeSelector: Object.fromEntries(Array.from({ length: 1_025 }, (_, i) => [`k${i}`, "v"])) },
      ["error: spec.nodeSelector: has too many entries: at most 1024 labels are allowed"],
    ],
    [
      "an empty string",
      { podSelector: { matchExpressions: [{ key: "", operator: "Exists" }] } },
      ["error: spec.podSelector.matchExpressions[0].key: must not be empty"],
    ],
    ["a short text", { code: "ab" }, ['error: spec.code: "ab" must have at least 3 characters']],
    ["a bound that is not allowed itself", { share: 1 }, ["error: spec.share: must be less than 1, got 1"]],
    [
      "a key",
      { named: { long: { size: 1 } } },
      ["error: spec.named.long: invalid key: Too big: expected string to have <=2 characters"],
    ],
    ["a form", { pattern: "A" }, ['error: spec.pattern: invalid value "A": must match /^[a-z]+$/']],
    ["a format with its own message", { secret: "y" }, ["error: spec.secret: must begin with an x"]],
    ["no alternative", { port: true }, ["error: spec.port: must be an integer or a string, got true"]],
    [
      "one alternative, but wrong inside",
      { port: "abcdef" },
      ['error: spec.port: "abcdef" must have at most 5 characters'],
    ],
    [
      "the alternative of the right type, wrong inside",
      { source: {} },
      ["error: spec.source.file: is missing: a string is required"],
    ],
  ];
  test.each(cases)("%s", (_name, spec, expected) => {
    expect(specSaid(spec)).toEqual(expected);
  });
});

describe("problems outside the spec", () => {
  test("a version that does not exist", () => {
    const found = { ...object({ mode: "strict" }), apiVersion: "test.usher.dev/v2" };
    expect(said(found)).toEqual([
      'error: apiVersion: Sample has no version "test.usher.dev/v2"; use test.usher.dev/v1',
    ]);
    expect(versionOf(KIND, found)).toBeUndefined();
    expect(versionOf(KIND, object({}))?.name).toBe("v1");
  });
  test("a missing name, an invalid name, a generated name", () => {
    const spec = { mode: "strict" };
    expect(said(object(spec, { metadata: {} }))).toEqual([
      "error: metadata.name: is missing: a name is required",
    ]);
    expect(said(object(spec, { metadata: { name: "A" } }))[0]).toContain('error: metadata.name: "A" is not');
    expect(said(object(spec, { metadata: { generateName: "a-" } }))).toEqual([]);
    expect(said(object(spec, { metadata: {} }), { ...KIND, standing: "file" })).toEqual([]);
  });
  test("a namespace for a cluster-scoped kind", () => {
    const metadata = { name: "one", namespace: "shop" };
    const found = object({ mode: "strict" }, { metadata });
    expect(said(found)).toEqual(["warning: metadata.namespace: has no effect: Sample is cluster-scoped"]);
    expect(said(found, { ...KIND, scope: "Namespaced" })).toEqual([]);
  });
  test("an unknown field beside the spec", () => {
    expect(said(object({ mode: "strict" }, { Spec: {} }))).toEqual([
      'warning: Spec: unknown field, has no effect; did you mean "spec"?',
    ]);
  });
  test("an absent spec counts as empty, and any other value is an error", () => {
    const { spec: _spec, ...without } = object({});
    expect(said(without)).toEqual(["error: spec.mode: is missing: one of strict, lenient is required"]);
    expect(said(object([1]))).toEqual(["error: spec: must be an object, got [1]"]);
  });
});

test("the module's own check runs only on a valid shape, also with warnings", () => {
  const kind: Kind = { ...KIND, check: () => [problem(["spec"], "is thought wrong")] };
  expect(said(object({ mode: "strict", extra: 1 }), kind)).toEqual([
    "warning: spec.extra: unknown field, has no effect",
    "error: spec: is thought wrong",
  ]);
  expect(said(object({ mode: "none" }), kind)).toEqual([
    'error: spec.mode: unsupported value "none": must be one of strict, lenient',
  ]);
  expect(said(object({ mode: false }))).toEqual([
    "error: spec.mode: unsupported value false: must be one of strict, lenient; YAML reads On, Off, Yes and No without quotes as booleans",
  ]);
});

describe("the number of problems is limited", () => {
  const keys = (count: number, key: (i: number) => string): JsonObject =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [key(i), "v"]));
  const rest = (count: number, noun: string) => `${count - MAX_PROBLEMS} more ${noun}s are not listed`;

  test.each<[string, JsonObject, string]>([
    ["unknown fields", object({ mode: "strict", ...keys(1_000, (i) => `f${i}`) }), rest(1_000, "warning")],
    [
      "unknown fields of an element",
      object({ mode: "strict", tolerations: [{ operator: "Exists", ...keys(500, (i) => `kye${i}`) }] }),
      rest(500, "warning"),
    ],
    [
      "unknown fields of many elements",
      object({ mode: "strict", spread: Array.from({ length: 100 }, () => ({ maxSkw: 1 })) }),
      `${3 * 100 - MAX_PROBLEMS} more errors`,
    ],
    [
      "unknown fields beside the spec",
      object(
        { mode: "strict" },
        keys(300, (i) => `f${i}`),
      ),
      rest(300, "warning"),
    ],
    [
      "values of a wrong type",
      object({
        mode: "strict",
        named: Object.fromEntries(Array.from({ length: 90 }, (_, i) => [`${i}`, 1])),
      }),
      rest(90, "error"),
    ],
  ])("%s: the first are listed, the rest is counted", (_what, written, last) => {
    const problems = said(written);
    expect(problems.length).toBeLessThanOrEqual(2 * MAX_PROBLEMS + 2);
    expect(problems.join("\n")).toContain(last);
  });

  test("warnings never hide errors", () => {
    const problems = said(object({ mode: "strct", ...keys(1_000, (i) => `f${i}`) }));
    expect(problems.join("\n")).toContain('spec.mode: unsupported value "strct"');
  });

  test("no check of a module hides its errors", () => {
    const many = Array.from({ length: 100 }, (_, i) => problem(["spec", i], "is wrong"));
    const kind: Kind = { ...KIND, check: () => many };
    expect(said(object({ mode: "strict" }), kind).at(-1)).toBe(
      `error: ${rest(100, "error")}; correct these first`,
    );
  });

  test("a spec of more values than are checked has one problem", () => {
    expect(specSaid(keys(70_000, (i) => `f${i}`))).toEqual([
      "error: spec: has more than 32768 values; split it into several objects",
    ]);
  });
});
