import type { Json, JsonObject } from "../../src/core/json.ts";
import { controlledBy, deployment } from "../builders/pod.ts";
import { clusterPolicy } from "../builders/policy.ts";
import { type GrowthCase, many, pairs, type Review, update } from "./case.ts";
import { smallPolicies } from "./tenant-policies.ts";

const SPEC = "/spec/template/spec";
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const LABELS = { app: "web" };
const containers = [{ name: "main", image: "registry.example/app:1" }];
const TERMS = `${SPEC}/affinity/nodeAffinity/${REQUIRED}/nodeSelectorTerms`;

const toleration = (i: number): JsonObject => ({ key: `t${i}`, operator: "Exists" });
const term = (i: number): JsonObject => ({
  matchExpressions: [{ key: `k${i}`, operator: "In", values: ["a"] }],
});
const podTerm = (i: number): JsonObject => ({
  topologyKey: "zone",
  labelSelector: { matchLabels: { app: `a${i}` } },
});
const affinity = (field: string, list: Json): JsonObject => ({ affinity: { [field]: { [REQUIRED]: list } } });

/** Every origin that a user can write. */
type Note = (n: number) => readonly JsonObject[];

const NOTES: readonly { readonly name: string; readonly n: number; readonly note: Note }[] = [
  {
    name: "origins of one toleration",
    n: 250,
    note: (n) => many(n, (i) => originOf(`p${i}`, [], { [`${SPEC}/tolerations`]: [toleration(i)] })),
  },
  {
    name: "one policy many times",
    n: 250,
    note: (n) => many(n, (i) => originOf("p", [], { [`${SPEC}/tolerations`]: [toleration(i)] })),
  },
  {
    name: "one origin of many tolerations",
    n: 500,
    note: (n) => [originOf("p", [], { [`${SPEC}/tolerations`]: many(n, toleration) })],
  },
  {
    name: "one list named many times",
    n: 500,
    note: (n) => [
      originOf(
        "p",
        many(n, () => `${SPEC}/tolerations`),
        {},
      ),
    ],
  },
  {
    name: "one list named by many",
    n: 250,
    note: (n) => many(n, (i) => originOf(`p${i}`, [`${SPEC}/tolerations`, `${SPEC}/nodeSelector`, SPEC], {})),
  },
  {
    name: "many places",
    n: 500,
    note: (n) => [
      originOf(
        "p",
        many(n, (i) => `${SPEC}/nodeSelector/k${i}`),
        {},
      ),
    ],
  },
  {
    name: "places of many",
    n: 250,
    note: (n) =>
      many(n, (i) =>
        originOf(
          `p${i}`,
          many(8, (k) => `${SPEC}/nodeSelector/k${8 * i + k}`),
          {},
        ),
      ),
  },
  {
    name: "origins of one term",
    n: 200,
    note: (n) => many(n, (i) => originOf(`p${i}`, [], { [TERMS]: [term(i)] })),
  },
  { name: "one origin of many terms", n: 200, note: (n) => [originOf("p", [], { [TERMS]: many(n, term) })] },
  {
    name: "origins of one pod term",
    n: 150,
    note: (n) =>
      many(n, (i) => originOf(`p${i}`, [], { [`${SPEC}/affinity/podAffinity/${REQUIRED}`]: [podTerm(i)] })),
  },
  { name: "long pointers", n: 15_000, note: (n) => [originOf("p", ["/a".repeat(n)], {})] },
  {
    name: "lists that are not there",
    n: 500,
    note: (n) => [originOf("p", [], Object.fromEntries(many(n, (i) => [`/x${i}`, [1]])))],
  },
  {
    name: "a long element",
    n: 25_000,
    note: (n) => [originOf("p", [], { [`${SPEC}/tolerations`]: [{ key: "t".repeat(n) }] })],
  },
  {
    name: "large elements",
    n: 1_500,
    note: (n) => [
      originOf("p", [], {
        [`${SPEC}/tolerations`]: [pairs(n)],
      }),
    ],
  },
];

/**
 * The object's lists that the provenance annotation refers to. Objects of both lists are stored, so each gets half of a
 * request's size.
 */
const SPECS: readonly { readonly name: string; readonly spec: JsonObject }[] = [
  {
    name: "30,000 tolerations",
    spec: {
      tolerations: many(30_000, toleration),
      nodeSelector: pairs(64),
    },
  },
  {
    name: "30,000 labels",
    spec: {
      nodeSelector: pairs(30_000),
      tolerations: many(64, toleration),
    },
  },
  {
    name: "1,000 of each",
    spec: {
      nodeSelector: pairs(1_000),
      tolerations: many(1_000, toleration),
      affinity: {
        nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: many(64, term) } },
        podAffinity: { [REQUIRED]: many(1_000, podTerm) },
      },
    },
  },
  { name: "10,000 terms", spec: affinity("nodeAffinity", { nodeSelectorTerms: many(10_000, term) }) },
  { name: "10,000 pod terms", spec: affinity("podAffinity", many(10_000, podTerm)) },
  {
    name: "one term of 8,000 requirements",
    spec: affinity("nodeAffinity", {
      nodeSelectorTerms: [
        { matchExpressions: many(8_000, (i) => ({ key: `k${i}`, operator: "In", values: ["a"] })) },
      ],
    }),
  },
];

type Way = (note: string, spec: JsonObject) => Review;

const OWNER = controlledBy("v1", "ConfigMap", "c");
const noted = (note: string, spec: JsonObject, more: JsonObject = {}) =>
  deployment({
    labels: LABELS,
    annotations: { "usher.dev/provenance": note, ...more },
    owner: OWNER,
    metadata: { resourceVersion: "5" },
    spec: { containers, ...spec },
  });
const bare = (more: JsonObject = {}, annotations: JsonObject = {}) =>
  deployment({
    labels: LABELS,
    owner: OWNER,
    annotations,
    metadata: { resourceVersion: "5" },
    spec: { containers, ...more },
  });

const POLICY = clusterPolicy("p1", {
  namespaceSelector: {},
  podSelector: {},
  onUpdate: "Inject",
  nodeSelector: { zone: "a" },
  tolerations: [{ key: "x", operator: "Exists" }],
});

const NONE: readonly JsonObject[] = [];

/** How a stored object with such an annotation is updated. */
function waysWith(count: number): { readonly name: string; readonly way: Way }[] {
  const injecting = [POLICY, ...smallPolicies(count, { onUpdate: "Inject" })];
  const small = [POLICY, ...smallPolicies(Math.ceil(count / 6))];
  return [
    {
      name: "written as it is",
      way: (note, spec) => update(NONE, noted(note, spec), noted(note, { ...spec, hostNetwork: true })),
    },
    { name: "stripped", way: (note, spec) => update(NONE, noted(note, spec), bare()) },
    {
      name: "injected",
      way: (note, spec) => update(injecting, noted(note, spec), noted(note, spec)),
    },
    {
      name: "reapplied",
      way: (note, spec) =>
        update(small, noted(note, spec), noted(note, spec, { "usher.dev/reapply": "now" })),
    },
    {
      name: "claimed",
      way: (note, spec) => update(injecting, bare(spec), noted(note, spec)),
    },
  ];
}

/** A forged annotation beside every list that it can refer to, for every way to update the object. */
export function noteCases(count: number): GrowthCase[] {
  const ways = waysWith(count);
  return NOTES.flatMap(({ name, n, note }) =>
    SPECS.flatMap(({ name: specName, spec }) =>
      ways.map(({ name: wayName, way }) => ({
        name: `note of ${name}, ${specName}, ${wayName}`,
        n,
        review: (size: number) => way(JSON.stringify({ placement: note(size) }), spec),
      })),
    ),
  );
}

function originOf(policy: string, set: readonly string[], added: JsonObject): JsonObject {
  return { policy: `ClusterPodSchedulingPolicy/${policy}`, set, added };
}
