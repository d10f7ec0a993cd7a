import type { JsonObject } from "../../src/core/json.ts";
import { pod } from "../builders/pod.ts";
import { clusterPolicy, namespacedPolicy } from "../builders/policy.ts";
import { creation, type GrowthCase, many, pairs } from "./case.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const WEB = { matchLabels: { app: "web" } };

/** A value for each criterion that needs no fact. */
const CRITERIA: JsonObject = {
  nodeSelector: { zone: "a" },
  affinity: {
    nodeAffinity: {
      [REQUIRED]: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["a", "b"] }] }],
      },
    },
    podAffinity: { [REQUIRED]: [{ topologyKey: "zone", labelSelector: { matchLabels: { app: "cache" } } }] },
    podAntiAffinity: {
      [REQUIRED]: [{ topologyKey: "host", labelSelector: { matchLabels: { app: "web" } } }],
    },
  },
  tolerations: [{ key: "pool", operator: "Exists" }],
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }],
  schedulingGates: [{ name: "example.com/gate" }],
  schedulerName: "mine",
};

export const EVERY_CRITERION = clusterPolicy("all", {
  namespaceSelector: {},
  podSelector: {},
  ...CRITERIA,
});

/** Policies of the tenant, each with a distinct value. */
export function smallPolicies(count: number, more: JsonObject = {}): JsonObject[] {
  return many(count, (i) =>
    namespacedPolicy("shop", `p${i}`, {
      podSelector: WEB,
      nodeSelector: { [`own${i}`]: "a" },
      affinity: {
        nodeAffinity: {
          [REQUIRED]: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: `l${i}`, operator: "In", values: ["a"] }] }],
          },
        },
      },
      tolerations: [{ key: `own${i}`, operator: "Exists" }],
      ...more,
    }),
  );
}

export function enforcing(count: number): JsonObject[] {
  return [
    clusterPolicy("all", { namespaceSelector: {}, podSelector: {}, ...CRITERIA, enforcement: "Refuse" }),
    ...smallPolicies(count, { enforcement: "Refuse" }),
  ];
}

/** The parts of a policy that can grow. */
const LARGE: readonly { readonly name: string; readonly spec: (i: number) => JsonObject }[] = [
  {
    name: "64 labels",
    spec: (p) => ({
      nodeSelector: pairs(
        64,
        (i) => `k${p}-${i}`,
        () => "v",
      ),
    }),
  },
  {
    name: "64 labels that conflict",
    spec: (p) => ({
      nodeSelector: pairs(
        64,
        (i) => `k${i}`,
        () => `v${p}`,
      ),
    }),
  },
  {
    name: "64 tolerations",
    spec: (p) => ({ tolerations: many(64, (i) => ({ key: `t${p}-${i}`, operator: "Exists" })) }),
  },
  {
    name: "64 terms",
    spec: (p) => ({
      affinity: {
        nodeAffinity: {
          [REQUIRED]: {
            nodeSelectorTerms: many(64, (i) => ({
              matchExpressions: [
                { key: "k", operator: "In", values: [`v${i}`] },
                { key: "p", operator: "NotIn", values: [`x${p}`] },
              ],
            })),
          },
        },
      },
    }),
  },
  {
    name: "64 pod terms",
    spec: (p) => ({
      affinity: {
        podAffinity: {
          [REQUIRED]: many(64, (i) => ({
            topologyKey: "zone",
            labelSelector: { matchLabels: { [`k${p}`]: `v${i}` } },
          })),
        },
      },
    }),
  },
  { name: "an invalid field", spec: () => ({ nodeSelector: { "not valid": "a" } }) },
];

/** The number of a tenant's policies that select a pod. */
export const POLICY_CASES: readonly GrowthCase[] = [
  ...LARGE.flatMap(({ name, spec }) =>
    (["mutate", "validate"] as const).map((phase) => ({
      name: `policies of ${name}, ${phase}`,
      n: 250,
      review: (n: number) =>
        creation(
          many(n, (i) =>
            namespacedPolicy("shop", `p${i}`, { podSelector: WEB, enforcement: "Refuse", ...spec(i) }),
          ),
          pod({ labels: { app: "web" } }),
          phase,
        ),
    })),
  ),
];

const requirements = many(63, (i) => ({ key: `r${i}`, operator: "NotIn", values: ["x"] }));

/** A tenant's policies with selectors of maximum size, for ordinary pods; the pod is in another namespace. */
export const ELSEWHERE_CASES: readonly GrowthCase[] = [
  ["one label and 63 requirements", { matchLabels: { app: "web" }, matchExpressions: requirements }],
  ["every pod", {}],
  [
    "64 values",
    {
      matchExpressions: [
        { key: "app", operator: "In", values: many(64, (i) => (i === 0 ? "web" : `a${i}`)) },
      ],
    },
  ],
  ["a label that exists", { matchExpressions: [{ key: "app", operator: "Exists" }, ...requirements] }],
].map(([name, podSelector]) => ({
  name: `policies of another namespace for ${name as string}`,
  n: 1_250,
  review: (n: number) =>
    creation(
      many(n, (i) =>
        namespacedPolicy("other", `p${i}`, {
          podSelector: podSelector as JsonObject,
          nodeSelector: { zone: "a" },
        }),
      ),
      pod({ labels: { app: "web" } }),
    ),
}));
