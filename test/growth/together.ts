import type { JsonObject } from "../../src/core/json.ts";
import { deployment, pod } from "../builders/pod.ts";
import { creation, type GrowthCase, many, pairs, update } from "./case.ts";
import { smallPolicies } from "./tenant-policies.ts";

const SPEC = "/spec/template/spec";
const LABELS = { app: "web" };
const containers = [{ name: "main", image: "registry.example/app:1" }];
const toleration = (i: number): JsonObject => ({ key: `t${i}`, operator: "Exists" });

const NO_POLICIES: readonly JsonObject[] = [];

/** A provenance annotation and the lists that it names, in a request with 16 elements for each element of the annotation. */
const NOTES: readonly { readonly name: string; readonly origins: (n: number) => readonly JsonObject[] }[] = [
  {
    name: "origins of one toleration",
    origins: (n) =>
      many(n, (i) => ({ policy: `K/p${i}`, added: { [`${SPEC}/tolerations`]: [toleration(i)] } })),
  },
  {
    name: "origins that name one list",
    origins: (n) => many(n, (i) => ({ policy: `K/p${i}`, set: [`${SPEC}/nodeSelector`] })),
  },
  {
    name: "one list many times",
    origins: (n) => [{ policy: "K/p", set: many(n, () => `${SPEC}/nodeSelector`) }],
  },
  {
    name: "one policy many times",
    origins: (n) => many(n, (i) => ({ policy: "K/p", added: { [`${SPEC}/tolerations`]: [toleration(i)] } })),
  },
  {
    name: "origins of one label",
    origins: (n) => many(n, (i) => ({ policy: `K/p${i}`, set: [`${SPEC}/nodeSelector/k${i}`] })),
  },
];

function stored(n: number, origins: readonly JsonObject[], more: JsonObject = {}): JsonObject {
  return deployment({
    labels: LABELS,
    metadata: { resourceVersion: "5" },
    annotations: { "usher.dev/provenance": JSON.stringify({ placement: origins }), ...more },
    spec: { containers, tolerations: many(16 * n, toleration), nodeSelector: pairs(16 * n) },
  });
}

/** Cases with quadratic cost if each element of one list is searched in the other: both grow. */
export const TOGETHER_CASES: readonly GrowthCase[] = [
  ...NOTES.flatMap(({ name, origins }) => [
    {
      name: `note of ${name} and its lists, stripped`,
      n: 1_024,
      review: (n: number) =>
        update(NO_POLICIES, stored(n, origins(n)), deployment({ labels: LABELS, spec: { containers } })),
    },
    {
      name: `note of ${name} and its lists, reapplied`,
      n: 1_024,
      review: (n: number) =>
        update(NO_POLICIES, stored(n, origins(n)), stored(n, origins(n), { "usher.dev/reapply": "now" })),
    },
  ]),
  {
    name: "policies and nodeSelector keys of a pod",
    n: 512,
    review: (n) =>
      creation(smallPolicies(n), pod({ labels: LABELS, spec: { containers, nodeSelector: pairs(16 * n) } })),
  },
  {
    name: "policies that enforce and nodeSelector keys of a pod",
    n: 512,
    review: (n) =>
      creation(
        smallPolicies(n, { enforcement: "Refuse" }),
        pod({ labels: LABELS, spec: { containers, nodeSelector: pairs(16 * n) } }),
        "validate",
      ),
  },
  {
    name: "policies and tolerations of a pod",
    n: 512,
    review: (n) =>
      creation(
        smallPolicies(n, { enforcement: "Refuse" }),
        pod({ labels: LABELS, spec: { containers, tolerations: many(32 * n, toleration) } }),
        "validate",
      ),
  },
];
