import fc from "fast-check";
import type { JsonObject } from "../../src/core/json.ts";
import type { NodeLike } from "../../src/core/kubernetes/selectors/node-selector.ts";
import { requiring, term } from "./merged.ts";
import type { Fields } from "./wants.ts";

/** Small value sets, so that generated values often meet, agree and contradict each other. */
const KEYS = ["zone", "disk"];
const VALUES = ["a", "b"];

const key = fc.constantFrom(...KEYS);
const value = fc.constantFrom(...VALUES);

const requirement = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(key, fc.constantFrom("=", "!="), value).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: key.map((one) => `${one}=a|b`) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("zone", "disk", "!zone", "!disk", "cores>2", "cores<4", "cores=3"),
  },
  { weight: 1, arbitrary: fc.constantFrom("@n1", "@n2") },
);

export const anyTerm: fc.Arbitrary<JsonObject> = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.uniqueArray(requirement, { minLength: 1, maxLength: 2 }).map((texts) => term(...texts)),
  },
  { weight: 1, arbitrary: fc.constant({}) },
);

const toleration: fc.Arbitrary<JsonObject> = fc.constantFrom<JsonObject>(
  { operator: "Exists" },
  { key: "pool", value: "etcd" },
  { key: "pool", operator: "Equal", value: "etcd" },
  { key: "pool", value: "etcd", effect: "NoExecute", tolerationSeconds: 5 },
  { key: "pool", value: "etcd", effect: "NoExecute" },
  { key: "gpu", operator: "Exists", effect: "NoSchedule" },
);

const podTerm = fc.record({
  labelSelector: fc.constantFrom({ matchLabels: { app: "x" } }, {}),
  topologyKey: key,
});
const spread = fc.record({
  maxSkew: fc.constantFrom(1, 2),
  topologyKey: key,
  whenUnsatisfiable: fc.constantFrom("DoNotSchedule", "ScheduleAnyway"),
});
const preference = fc.record({
  weight: fc.constantFrom(1, 100),
  preference: anyTerm.filter(({ matchExpressions }) => matchExpressions !== undefined),
});
const weighted = fc.record({ weight: fc.constantFrom(1, 100), podAffinityTerm: podTerm });

const some = <Item>(item: fc.Arbitrary<Item>, maxLength = 2) => fc.array(item, { maxLength });
const name = (...names: string[]) => fc.option(fc.constantFrom(...names), { nil: undefined });
const pairs = fc.dictionary(key, value, { maxKeys: 2 }).map((labels) =>
  Object.keys(labels)
    .sort()
    .map((one): [string, string] => [one, labels[one] ?? ""]),
);

/**
 * Generated criteria of a policy: often a little of everything. Spread constraints and gates occur once, as policy
 * validation requires.
 */
export const anyCriteria: fc.Arbitrary<Required<Fields>> = fc.record({
  nodeSelector: pairs,
  nodeName: name("n1", "n2"),
  schedulerName: name("one", "two", "default-scheduler"),
  priorityClassName: name("high", "low"),
  runtimeClassName: name("kata", "runc"),
  requiredNodeAffinity: some(anyTerm, 3),
  preferredNodeAffinity: some(preference),
  requiredPodAffinity: some(podTerm),
  preferredPodAffinity: some(weighted),
  requiredPodAntiAffinity: some(podTerm),
  preferredPodAntiAffinity: some(weighted),
  tolerations: some(toleration),
  topologySpreadConstraints: fc.uniqueArray(spread, {
    maxLength: 2,
    selector: (one) => `${one.topologyKey} ${one.whenUnsatisfiable}`,
  }),
  schedulingGates: fc.subarray([{ name: "wait" }, { name: "stay" }]),
});

/** A pod spec that sets some of the same fields itself. */
export const anySpec: fc.Arbitrary<JsonObject> = fc
  .record({ criteria: anyCriteria, requires: fc.boolean(), invented: fc.boolean() })
  .map(({ criteria, requires, invented }) => ({
    containers: [{ name: "c", ...(invented ? { invented: { x: [null, 1] } } : {}) }],
    ...(criteria.nodeSelector.length === 0
      ? {}
      : { nodeSelector: Object.fromEntries(criteria.nodeSelector) }),
    ...(criteria.tolerations.length === 0 ? {} : { tolerations: criteria.tolerations }),
    ...(criteria.schedulerName === undefined ? {} : { schedulerName: criteria.schedulerName }),
    ...(criteria.priorityClassName === undefined ? {} : { priorityClassName: criteria.priorityClassName }),
    ...(criteria.schedulingGates.length === 0 ? {} : { schedulingGates: criteria.schedulingGates }),
    ...(requires ? requiring(...criteria.requiredNodeAffinity) : {}),
    ...(invented ? { future: [1, { two: null }] } : {}),
  }));

/** In the form of a policy's spec. */
export function asPolicySpec(criteria: Required<Fields>): JsonObject {
  const { requiredNodeAffinity, preferredNodeAffinity, requiredPodAffinity, preferredPodAffinity } = criteria;
  const { requiredPodAntiAffinity, preferredPodAntiAffinity, nodeSelector, ...rest } = criteria;
  const terms = requiredNodeAffinity.filter((one) => Object.keys(one).length > 0);
  const lists = (required: readonly JsonObject[], preferred: readonly JsonObject[]): JsonObject => ({
    requiredDuringSchedulingIgnoredDuringExecution: required,
    preferredDuringSchedulingIgnoredDuringExecution: preferred,
  });
  return JSON.parse(
    JSON.stringify({
      nodeName: rest.schedulingGates.length > 0 ? undefined : rest.nodeName,
      schedulerName: rest.schedulerName,
      tolerations: rest.tolerations,
      topologySpreadConstraints: rest.topologySpreadConstraints,
      schedulingGates: rest.schedulingGates,
      nodeSelector: Object.fromEntries(nodeSelector),
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: preferredNodeAffinity,
          ...(terms.length === 0
            ? {}
            : { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } }),
        },
        podAffinity: lists(requiredPodAffinity, preferredPodAffinity),
        podAntiAffinity: lists(requiredPodAntiAffinity, preferredPodAntiAffinity),
      },
    }),
  );
}

const maybe = (...values: string[]) => [undefined, ...values];

/** Every node that these criteria could distinguish from another. */
export const ALL_NODES: readonly NodeLike[] = maybe("a", "b", "c").flatMap((zone) =>
  maybe("a", "b", "c").flatMap((disk) =>
    maybe("1", "3", "5").flatMap((cores) =>
      ["n1", "n2", "n3"].map((called) => ({
        name: called,
        labels: JSON.parse(JSON.stringify({ zone, disk, cores })) as JsonObject,
      })),
    ),
  ),
);
