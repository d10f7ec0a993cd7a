import type { Json, JsonObject } from "../../src/core/json.ts";
import { clusterPolicy } from "../builders/policy.ts";
import { creation, type GrowthCase, many, pairs } from "./case.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const keys = (n: number) =>
  pairs(
    n,
    (i) => `nodeSelectr${i}`,
    () => "v",
  );
const bad = (n: number) =>
  pairs(
    n,
    (i) => `not valid ${i}`,
    () => "v",
  );
const VALID = { namespaceSelector: {}, podSelector: {}, nodeSelector: { zone: "a" } };

/** The errors in a written policy, at a size. */
const SPECS: readonly { readonly name: string; readonly n: number; readonly spec: (n: number) => Json }[] = [
  { name: "unknown fields", n: 18_000, spec: (n) => ({ ...VALID, ...keys(n) }) },
  { name: "unknown fields up to the limit", n: 4_000, spec: (n) => ({ ...VALID, ...keys(n) }) },
  {
    name: "invalid label keys up to the limit",
    n: 4_000,
    spec: (n) => ({ ...VALID, nodeSelector: bad(n) }),
  },
  { name: "unknown fields of a toleration", n: 18_000, spec: (n) => ({ ...VALID, tolerations: [keys(n)] }) },
  {
    name: "unknown fields of many tolerations",
    n: 7_000,
    spec: (n) => ({ ...VALID, tolerations: many(n, () => ({ kye: "a" })) }),
  },
  { name: "invalid label keys", n: 18_000, spec: (n) => ({ ...VALID, nodeSelector: bad(n) }) },
  {
    name: "label values of a wrong type",
    n: 18_000,
    spec: (n) => ({ ...VALID, nodeSelector: Object.fromEntries(many(n, (i) => [`k${i}`, i])) }),
  },
  {
    name: "valid label keys",
    n: 18_000,
    spec: (n) => ({
      ...VALID,
      nodeSelector: pairs(n),
    }),
  },
  {
    name: "tolerations of a wrong type",
    n: 40_000,
    spec: (n) => ({ ...VALID, tolerations: many(n, () => "x") }),
  },
  {
    name: "tolerations of a wrong operator",
    n: 10_000,
    spec: (n) => ({ ...VALID, tolerations: many(n, () => ({ operator: "Exist" })) }),
  },
  {
    name: "tolerations",
    n: 10_000,
    spec: (n) => ({ ...VALID, tolerations: many(n, (i) => ({ key: `t${i}`, operator: "Exists" })) }),
  },
  {
    name: "invalid pod selector labels",
    n: 18_000,
    spec: (n) => ({ ...VALID, podSelector: { matchLabels: bad(n) } }),
  },
  {
    name: "invalid selector requirements",
    n: 8_000,
    spec: (n) => ({
      ...VALID,
      podSelector: { matchExpressions: many(n, () => ({ key: "a", operator: "Inn", values: ["a"] })) },
    }),
  },
  {
    name: "invalid values",
    n: 30_000,
    spec: (n) => ({
      ...VALID,
      podSelector: {
        matchExpressions: [{ key: "a", operator: "In", values: many(n, (i) => `not valid ${i}`) }],
      },
    }),
  },
  {
    name: "required terms",
    n: 4_000,
    spec: (n) => ({
      ...VALID,
      affinity: {
        nodeAffinity: {
          [REQUIRED]: {
            nodeSelectorTerms: many(n, (i) => ({
              matchExpressions: [{ key: `k${i}`, operator: "In", values: ["a"] }],
            })),
          },
        },
      },
    }),
  },
  {
    name: "wrong terms",
    n: 8_000,
    spec: (n) => ({
      ...VALID,
      affinity: {
        nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: many(n, () => ({ matchExpression: [] })) } },
      },
    }),
  },
  {
    name: "gates of a wrong type",
    n: 20_000,
    spec: (n) => ({ ...VALID, schedulingGates: many(n, (i) => ({ nam: `g${i}` })) }),
  },
  { name: "one long string", n: 350_000, spec: (n) => ({ ...VALID, onConflict: "x".repeat(n) }) },
  { name: "one long unknown field", n: 350_000, spec: (n) => ({ ...VALID, ["x".repeat(n)]: 1 }) },
  { name: "a list in place of the spec", n: 40_000, spec: (n) => many(n, () => 1) },
];

/** Policies that are validated when they are written. */
export const WRITTEN_CASES: readonly GrowthCase[] = [
  ...SPECS.map(({ name, n, spec }) => ({
    name: `written policy with ${name}`,
    n,
    review: (size: number) => creation([], { ...clusterPolicy("p", {}), spec: spec(size) }, "validate"),
  })),
  {
    name: "written policy with unknown fields beside its spec",
    n: 18_000,
    review: (size: number) =>
      creation([], { ...clusterPolicy("p", VALID), ...keys(size) } as JsonObject, "validate"),
  },
];
