import type { Json, JsonObject } from "../../src/core/json.ts";
import { deployment, pod } from "../builders/pod.ts";
import { creation, type GrowthCase, many, pairs, update } from "./case.ts";
import { EVERY_CRITERION, enforcing, smallPolicies } from "./tenant-policies.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

/** The parts of a pod's spec that can grow, at a size. */
const FIELDS: readonly {
  readonly name: string;
  readonly n: number;
  readonly spec: (n: number) => JsonObject;
}[] = [
  {
    name: "nodeSelector keys",
    n: 11_000,
    spec: (n) => ({
      nodeSelector: pairs(n),
    }),
  },
  {
    name: "nodeSelector keys beside a term",
    n: 11_000,
    spec: (n) => ({
      nodeSelector: pairs(n),
      ...required([{ matchExpressions: [isIn("k1", ["v", "w"]), isIn("zone", ["a"])] }]),
    }),
  },
  {
    name: "tolerations",
    n: 7_500,
    spec: (n) => ({ tolerations: many(n, (i) => ({ key: `t${i}`, operator: "Exists" })) }),
  },
  { name: "tolerations up to the limit", n: 128, spec: (n) => ({ tolerations: many(n, tolerationOf) }) },
  {
    name: "required node terms",
    n: 4_000,
    spec: (n) => required(many(n, (i) => ({ matchExpressions: [isIn(`k${i}`, ["a"])] }))),
  },
  {
    name: "required node terms up to the limit",
    n: 256,
    spec: (n) => required(many(n, (i) => ({ matchExpressions: [isIn(`k${i}`, ["a"])] }))),
  },
  {
    name: "requirements of a term",
    n: 5_000,
    spec: (n) => required([{ matchExpressions: many(n, (i) => isIn(`k${i}`, ["a"])) }]),
  },
  {
    name: "requirements of a term up to the limit",
    n: 480,
    spec: (n) => required([{ matchExpressions: many(n, (i) => isIn(`k${i}`, ["a"])) }]),
  },
  {
    name: "requirements about one label",
    n: 480,
    spec: (n) =>
      required([{ matchExpressions: many(n, (i) => ({ key: "k", operator: "NotIn", values: [`v${i}`] })) }]),
  },
  {
    name: "values of a requirement",
    n: 30_000,
    spec: (n) =>
      required([
        {
          matchExpressions: [
            isIn(
              "k",
              many(n, (i) => `v${i}`),
            ),
          ],
        },
      ]),
  },
  {
    name: "values of a requirement up to the limit",
    n: 1_000,
    spec: (n) =>
      required([
        {
          matchExpressions: [
            isIn(
              "k",
              many(n, (i) => `v${i}`),
            ),
          ],
        },
      ]),
  },
  {
    name: "preferred node terms",
    n: 3_500,
    spec: (n) =>
      affinity(
        "nodeAffinity",
        PREFERRED,
        many(n, (i) => ({
          weight: 1,
          preference: { matchExpressions: [isIn(`k${i}`, ["a"])] },
        })),
      ),
  },
  ...(["podAffinity", "podAntiAffinity"] as const).flatMap((field) => [
    {
      name: `${field} terms`,
      n: 3_500,
      spec: (n: number) => affinity(field, REQUIRED, many(n, podTerm)),
    },
    {
      name: `${field} terms up to the limit`,
      n: 128,
      spec: (n: number) => affinity(field, REQUIRED, many(n, podTerm)),
    },
    {
      name: `preferred ${field} terms`,
      n: 3_500,
      spec: (n: number) =>
        affinity(
          field,
          PREFERRED,
          many(n, (i) => ({ weight: 1, podAffinityTerm: podTerm(i) })),
        ),
    },
  ]),
  {
    name: "labels of one pod affinity term",
    n: 8_000,
    spec: (n) =>
      affinity("podAffinity", REQUIRED, [
        {
          topologyKey: "zone",
          labelSelector: {
            matchLabels: pairs(n),
          },
        },
      ]),
  },
  {
    name: "topology spread constraints",
    n: 3_500,
    spec: (n) => ({ topologySpreadConstraints: many(n, spreadOf) }),
  },
  {
    name: "topology spread constraints up to the limit",
    n: 128,
    spec: (n) => ({ topologySpreadConstraints: many(n, spreadOf) }),
  },
  {
    name: "scheduling gates",
    n: 15_000,
    spec: (n) => ({ schedulingGates: many(n, (i) => ({ name: `g${i}` })) }),
  },
  {
    name: "containers",
    n: 10_000,
    spec: (n) => ({ containers: many(n, (i) => ({ name: `c${i}`, image: "a" })) }),
  },
  {
    name: "unknown fields",
    n: 20_000,
    spec: (n) =>
      pairs(
        n,
        (i) => `f${i}`,
        () => "v",
      ),
  },
  { name: "one long name", n: 350_000, spec: (n) => ({ schedulerName: "s".repeat(n) }) },
];

/** The parts of metadata that can grow. */
const METADATA: readonly {
  readonly name: string;
  readonly n: number;
  readonly metadata: (n: number) => JsonObject;
}[] = [
  {
    name: "labels",
    n: 20_000,
    metadata: (n) => ({
      labels: {
        app: "web",
        ...pairs(n),
      },
    }),
  },
  {
    name: "annotations",
    n: 2_000,
    metadata: (n) => ({
      annotations: pairs(n),
    }),
  },
  {
    name: "owner references",
    n: 4_000,
    metadata: (n) => ({
      ownerReferences: many(n, (i) => ({ apiVersion: "v1", kind: "ConfigMap", name: `c${i}`, uid: `u${i}` })),
    }),
  },
  { name: "finalizers", n: 20_000, metadata: (n) => ({ finalizers: many(n, (i) => `example.com/f${i}`) }) },
];

const containers = [{ name: "main", image: "registry.example/app:1" }];
const LABELS = { app: "web" };

/** Each field of an object, created, updated and enforced, with this many policies. */
export function objectCases(count: number): GrowthCase[] {
  const small = smallPolicies(count);
  const enforced = enforcing(count);
  const injecting = smallPolicies(count, { onUpdate: "Inject" });
  const sets = [
    { name: "one cluster policy", policies: [EVERY_CRITERION] },
    { name: "many small policies", policies: small },
  ];
  return [
    ...FIELDS.flatMap(({ name, n, spec }) => {
      const specOf = (size: number) => ({ containers, ...spec(size) });
      return [
        ...sets.map((set) => ({
          name: `pod with ${name}, ${set.name}`,
          n,
          review: (size: number) => creation(set.policies, pod({ labels: LABELS, spec: specOf(size) })),
        })),
        {
          name: `pod with ${name}, enforced`,
          n,
          review: (size: number) =>
            creation(enforced, pod({ labels: LABELS, spec: specOf(size) }), "validate"),
        },
        {
          name: `update of a template with ${name}, enforced`,
          n: Math.ceil(n / 2),
          review: (size: number) =>
            update(
              enforced,
              deployment({ labels: LABELS, spec: specOf(size) }),
              deployment({ labels: LABELS, spec: { ...specOf(size), hostNetwork: true } }),
              "validate",
            ),
        },
        {
          name: `update of a template with ${name}, many that inject`,
          n: Math.ceil(n / 2),
          review: (size: number) =>
            update(
              injecting,
              deployment({ labels: LABELS, spec: specOf(size) }),
              deployment({ labels: LABELS, spec: { ...specOf(size), hostNetwork: true } }),
            ),
        },
      ];
    }),
    ...METADATA.map(({ name, n, metadata }) => ({
      name: `pod with ${name}, many small policies`,
      n,
      review: (size: number) => creation(small, pod({ labels: LABELS, metadata: metadata(size) })),
    })),
  ];
}

function isIn(key: string, values: readonly string[]): JsonObject {
  return { key, operator: "In", values };
}

function affinity(field: string, list: string, value: Json): JsonObject {
  return { affinity: { [field]: { [list]: value } } };
}

function required(nodeSelectorTerms: readonly JsonObject[]): JsonObject {
  return affinity("nodeAffinity", REQUIRED, { nodeSelectorTerms });
}

function tolerationOf(i: number): JsonObject {
  return { key: `t${i}`, operator: "Exists" };
}

function podTerm(i: number): JsonObject {
  return { topologyKey: "zone", labelSelector: { matchLabels: { app: `a${i}` } } };
}

function spreadOf(i: number): JsonObject {
  return { maxSkew: 1, topologyKey: `z${i}`, whenUnsatisfiable: "DoNotSchedule" };
}
