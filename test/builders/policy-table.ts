import type { Json, JsonObject } from "../../src/core/json.ts";

const ALL = { namespaceSelector: {}, podSelector: {} };
const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";
const NODE = "spec.affinity.nodeAffinity";
const TERM = `${NODE}.${REQUIRED}.nodeSelectorTerms[0]`;
const POD = `spec.affinity.podAffinity.${REQUIRED}[0]`;
const ANTI = `spec.affinity.podAntiAffinity.${PREFERRED}[0]`;
const SPREAD = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", labelSelector: {} };

const selecting = (requirement: Json) => ({ ...ALL, podSelector: { matchExpressions: [requirement] } });
const terms = (...list: Json[]) => ({
  ...ALL,
  affinity: { nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: list } } },
});
const onLabel = (requirement: Json) => terms({ matchExpressions: [requirement] });
const onField = (requirement: Json) => terms({ matchFields: [requirement] });
const preferring = (preference: Json) => ({
  ...ALL,
  affinity: { nodeAffinity: { [PREFERRED]: [preference] } },
});
const near = (term: Json) => ({ ...ALL, affinity: { podAffinity: { [REQUIRED]: [term] } } });
const away = (term: Json) => ({ ...ALL, affinity: { podAntiAffinity: { [PREFERRED]: [term] } } });
const bearing = (...tolerations: Json[]) => ({ ...ALL, tolerations });
const spreading = (...topologySpreadConstraints: Json[]) => ({ ...ALL, topologySpreadConstraints });

/** Which check rejects a policy first: the API server's CRD validation, or usher's webhook. */
type Refuser = "crd" | "webhook";

/** Specs that must be rejected, with the field that the error must name. */
export const BAD_SPECS: readonly (readonly [what: string, spec: JsonObject, field: string, by: Refuser])[] = [
  // Selectors.
  [
    "a bad key in matchLabels",
    { ...ALL, podSelector: { matchLabels: { "a b": "x" } } },
    "spec.podSelector.matchLabels[a b]",
    "crd",
  ],
  [
    "a bad value in matchLabels",
    { ...ALL, podSelector: { matchLabels: { a: "x y" } } },
    "spec.podSelector.matchLabels.a",
    "crd",
  ],
  [
    "a bad key in an expression",
    selecting({ key: "a b", operator: "Exists" }),
    "spec.podSelector.matchExpressions[0].key",
    "crd",
  ],
  [
    "a bad value in an expression",
    selecting({ key: "a", operator: "In", values: ["-"] }),
    "spec.podSelector.matchExpressions[0].values[0]",
    "crd",
  ],
  [
    "In without values",
    { ...ALL, namespaceSelector: { matchExpressions: [{ key: "a", operator: "In" }] } },
    "spec.namespaceSelector.matchExpressions[0].values",
    "crd",
  ],
  [
    "NotIn with no values",
    selecting({ key: "a", operator: "NotIn", values: [] }),
    "spec.podSelector.matchExpressions[0].values",
    "crd",
  ],
  [
    "Exists with values",
    selecting({ key: "a", operator: "Exists", values: ["x"] }),
    "spec.podSelector.matchExpressions[0].values",
    "crd",
  ],
  [
    "DoesNotExist with values",
    selecting({ key: "a", operator: "DoesNotExist", values: ["x"] }),
    "spec.podSelector.matchExpressions[0].values",
    "crd",
  ],
  [
    "an unknown operator",
    selecting({ key: "a", operator: "Exist" }),
    "spec.podSelector.matchExpressions[0].operator",
    "crd",
  ],
  [
    "an operator of nodes",
    selecting({ key: "a", operator: "Gt", values: ["1"] }),
    "spec.podSelector.matchExpressions[0].operator",
    "crd",
  ],
  ["a selector that is a string", { ...ALL, podSelector: "app=etcd" }, "spec.podSelector", "crd"],
  // nodeSelector and names.
  ["a bad nodeSelector key", { ...ALL, nodeSelector: { "-x": "y" } }, "spec.nodeSelector.-x", "crd"],
  [
    "a nodeSelector key that is too long",
    { ...ALL, nodeSelector: { [`${"a".repeat(64)}`]: "y" } },
    `spec.nodeSelector.${"a".repeat(64)}`,
    "crd",
  ],
  ["a bad nodeSelector value", { ...ALL, nodeSelector: { x: "-y" } }, "spec.nodeSelector.x", "crd"],
  [
    "a nodeSelector value that is not a string",
    { ...ALL, nodeSelector: { x: 1 } },
    "spec.nodeSelector.x",
    "crd",
  ],
  ["a nodeSelector that is a list", { ...ALL, nodeSelector: ["x"] }, "spec.nodeSelector", "crd"],
  ["a nodeName that can't be a node's name", { ...ALL, nodeName: "Node_1" }, "spec.nodeName", "crd"],
  ["a schedulerName that is not a string", { ...ALL, schedulerName: 1 }, "spec.schedulerName", "crd"],
  ["an invalid priorityClassName", { ...ALL, priorityClassName: "High!" }, "spec.priorityClassName", "crd"],
  ["an invalid runtimeClassName", { ...ALL, runtimeClassName: "a..b" }, "spec.runtimeClassName", "crd"],
  // Required node affinity.
  ["no terms", terms(), `${NODE}.${REQUIRED}.nodeSelectorTerms`, "crd"],
  [
    "required affinity without terms",
    { ...ALL, affinity: { nodeAffinity: { [REQUIRED]: {} } } },
    `${NODE}.${REQUIRED}.nodeSelectorTerms`,
    "crd",
  ],
  [
    "a node requirement: In without values",
    onLabel({ key: "zone", operator: "In" }),
    `${TERM}.matchExpressions[0].values`,
    "crd",
  ],
  [
    "a node requirement: a bad key",
    onLabel({ key: "/zone", operator: "Exists" }),
    `${TERM}.matchExpressions[0].key`,
    "crd",
  ],
  [
    "a node requirement: no operator",
    onLabel({ key: "zone" }),
    `${TERM}.matchExpressions[0].operator`,
    "crd",
  ],
  [
    "a node requirement: an unknown operator",
    onLabel({ key: "zone", operator: "Like", values: ["a"] }),
    `${TERM}.matchExpressions[0].operator`,
    "crd",
  ],
  [
    "a node requirement: Exists with values",
    onLabel({ key: "zone", operator: "Exists", values: ["a"] }),
    `${TERM}.matchExpressions[0].values`,
    "crd",
  ],
  [
    "a node requirement: a value that no label has",
    onLabel({ key: "zone", operator: "In", values: ["a", "b c"] }),
    `${TERM}.matchExpressions[0].values[1]`,
    "crd",
  ],
  [
    "Gt with two values",
    onLabel({ key: "cores", operator: "Gt", values: ["1", "2"] }),
    `${TERM}.matchExpressions[0].values`,
    "crd",
  ],
  [
    "Lt without a value",
    onLabel({ key: "cores", operator: "Lt" }),
    `${TERM}.matchExpressions[0].values`,
    "crd",
  ],
  [
    "Gt with a word",
    onLabel({ key: "cores", operator: "Gt", values: ["many"] }),
    `${TERM}.matchExpressions[0].values`,
    "crd",
  ],
  [
    "Gt beyond 64 bits",
    onLabel({ key: "cores", operator: "Gt", values: ["9223372036854775808"] }),
    `${TERM}.matchExpressions[0].values`,
    "webhook",
  ],
  [
    "a field that nodes do not have",
    onField({ key: "metadata.uid", operator: "In", values: ["a"] }),
    `${TERM}.matchFields[0].key`,
    "crd",
  ],
  [
    "a field with another operator",
    onField({ key: "metadata.name", operator: "Exists" }),
    `${TERM}.matchFields[0].operator`,
    "crd",
  ],
  [
    "a field with two values",
    onField({ key: "metadata.name", operator: "In", values: ["a", "b"] }),
    `${TERM}.matchFields[0].values`,
    "crd",
  ],
  [
    "a field with an invalid name",
    onField({ key: "metadata.name", operator: "In", values: ["A"] }),
    `${TERM}.matchFields[0].values[0]`,
    "crd",
  ],
  ["terms that no node can match", impossible(), `${NODE}.${REQUIRED}.nodeSelectorTerms`, "webhook"],
  [
    "a nodeSelector that no term allows",
    { ...onLabel({ key: "zone", operator: "In", values: ["a"] }), nodeSelector: { zone: "b" } },
    `${NODE}.${REQUIRED}.nodeSelectorTerms`,
    "webhook",
  ],
  // Preferences.
  ["weight 0", preferring({ weight: 0, preference: {} }), `${NODE}.${PREFERRED}[0].weight`, "crd"],
  ["weight 101", preferring({ weight: 101, preference: {} }), `${NODE}.${PREFERRED}[0].weight`, "crd"],
  ["a preference without a weight", preferring({ preference: {} }), `${NODE}.${PREFERRED}[0].weight`, "crd"],
  ["an empty preference", preferring({ weight: 1 }), `${NODE}.${PREFERRED}[0].preference`, "crd"],
  [
    "a bad requirement in a preference",
    preferring({ weight: 1, preference: { matchExpressions: [{ key: "a", operator: "In" }] } }),
    `${NODE}.${PREFERRED}[0].preference.matchExpressions[0].values`,
    "crd",
  ],
  [
    "a pod preference whose weight is too high",
    away({ weight: 1000, podAffinityTerm: { topologyKey: "zone" } }),
    `${ANTI}.weight`,
    "crd",
  ],
  [
    "a bad term in a pod preference",
    away({ weight: 1, podAffinityTerm: { topologyKey: "a b" } }),
    `${ANTI}.podAffinityTerm.topologyKey`,
    "crd",
  ],
  // Other pods.
  ["no topologyKey", near({ labelSelector: {} }), `${POD}.topologyKey`, "crd"],
  ["an empty topologyKey", near({ topologyKey: "" }), `${POD}.topologyKey`, "crd"],
  ["a bad topologyKey", near({ topologyKey: "a/b/c" }), `${POD}.topologyKey`, "crd"],
  [
    "a bad labelSelector of pods",
    near({ topologyKey: "zone", labelSelector: { matchExpressions: [{ key: "a", operator: "In" }] } }),
    `${POD}.labelSelector.matchExpressions[0].values`,
    "crd",
  ],
  [
    "a bad key in the labels of pods",
    near({ topologyKey: "zone", labelSelector: { matchLabels: { "a b": "c" } } }),
    `${POD}.labelSelector.matchLabels[a b]`,
    "webhook",
  ],
  [
    "a bad namespaceSelector",
    near({
      topologyKey: "zone",
      namespaceSelector: { matchExpressions: [{ key: "a", operator: "Exists", values: ["x"] }] },
    }),
    `${POD}.namespaceSelector.matchExpressions[0].values`,
    "crd",
  ],
  [
    "an invalid namespace",
    near({ topologyKey: "zone", namespaces: ["shop", "Shop"] }),
    `${POD}.namespaces[1]`,
    "crd",
  ],
  [
    "matchLabelKeys without a selector",
    near({ topologyKey: "zone", matchLabelKeys: ["app"] }),
    `${POD}.matchLabelKeys`,
    "crd",
  ],
  [
    "a bad key in mismatchLabelKeys",
    near({ topologyKey: "zone", labelSelector: {}, mismatchLabelKeys: ["a b"] }),
    `${POD}.mismatchLabelKeys[0]`,
    "crd",
  ],
  [
    "a key in both matchLabelKeys and mismatchLabelKeys",
    near({ topologyKey: "zone", labelSelector: {}, matchLabelKeys: ["app"], mismatchLabelKeys: ["app"] }),
    `${POD}.mismatchLabelKeys[0]`,
    "webhook",
  ],
  [
    "a key in matchLabelKeys and the selector",
    near({ topologyKey: "zone", labelSelector: { matchLabels: { app: "x" } }, matchLabelKeys: ["app"] }),
    `${POD}.matchLabelKeys[0]`,
    "webhook",
  ],
  // Tolerations.
  ["a bad taint key", bearing({ key: "a b", operator: "Exists" }), "spec.tolerations[0].key", "crd"],
  ["no key and Equal", bearing({ operator: "Equal", value: "x" }), "spec.tolerations[0].operator", "crd"],
  ["no key and no operator", bearing({ effect: "NoSchedule" }), "spec.tolerations[0].operator", "crd"],
  [
    "seconds with an effect other than NoExecute",
    bearing({ key: "a", operator: "Exists", effect: "NoSchedule", tolerationSeconds: 1 }),
    "spec.tolerations[0].effect",
    "crd",
  ],
  ["a bad value", bearing({ key: "a", value: "x y" }), "spec.tolerations[0].value", "crd"],
  [
    "Exists with a value",
    bearing({ key: "a", operator: "Exists", value: "x" }),
    "spec.tolerations[0].value",
    "crd",
  ],
  ["an unknown operator", bearing({ key: "a", operator: "In" }), "spec.tolerations[0].operator", "crd"],
  [
    "an unknown effect",
    bearing({ key: "a", operator: "Exists", effect: "NoEntry" }),
    "spec.tolerations[0].effect",
    "crd",
  ],
  ["Gt with a word", bearing({ key: "a", operator: "Gt", value: "x" }), "spec.tolerations[0].value", "crd"],
  [
    "Lt with a plus sign",
    bearing({ key: "a", operator: "Lt", value: "+1" }),
    "spec.tolerations[0].value",
    "crd",
  ],
  ["tolerations that are not a list", { ...ALL, tolerations: {} }, "spec.tolerations", "crd"],
  // Spread, gates.
  ["a skew of 0", spreading({ ...SPREAD, maxSkew: 0 }), "spec.topologySpreadConstraints[0].maxSkew", "crd"],
  [
    "a spread without a topologyKey",
    spreading({ ...SPREAD, topologyKey: "a b" }),
    "spec.topologySpreadConstraints[0].topologyKey",
    "crd",
  ],
  [
    "another whenUnsatisfiable",
    spreading({ ...SPREAD, whenUnsatisfiable: "Never" }),
    "spec.topologySpreadConstraints[0].whenUnsatisfiable",
    "crd",
  ],
  [
    "minDomains with ScheduleAnyway",
    spreading({ ...SPREAD, whenUnsatisfiable: "ScheduleAnyway", minDomains: 2 }),
    "spec.topologySpreadConstraints[0].minDomains",
    "crd",
  ],
  [
    "another nodeTaintsPolicy",
    spreading({ ...SPREAD, nodeTaintsPolicy: "honor" }),
    "spec.topologySpreadConstraints[0].nodeTaintsPolicy",
    "crd",
  ],
  [
    "matchLabelKeys of a spread without a selector",
    spreading({ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule", matchLabelKeys: ["a"] }),
    "spec.topologySpreadConstraints[0].matchLabelKeys",
    "crd",
  ],
  [
    "a duplicate topologyKey",
    spreading(SPREAD, { ...SPREAD, maxSkew: 2 }),
    "spec.topologySpreadConstraints[1]",
    "crd",
  ],
  ["a gate without a name", { ...ALL, schedulingGates: [{}] }, "spec.schedulingGates[0].name", "crd"],
  [
    "a gate with a bad name",
    { ...ALL, schedulingGates: [{ name: "a b" }] },
    "spec.schedulingGates[0].name",
    "crd",
  ],
  [
    "a duplicate gate",
    { ...ALL, schedulingGates: [{ name: "a" }, { name: "a" }] },
    "spec.schedulingGates[1]",
    "crd",
  ],
  [
    "both a nodeName and a gate",
    { ...ALL, nodeName: "n1", schedulingGates: [{ name: "a" }] },
    "spec.schedulingGates",
    "crd",
  ],
  // Priority.
  ["a priority that is a string", { ...ALL, priority: "high" }, "spec.priority", "crd"],
  ["a priority out of bounds", { ...ALL, priority: 2_000_000_000 }, "spec.priority", "crd"],
  ["another failurePolicy", { ...ALL, failurePolicy: "fail" }, "spec.failurePolicy", "crd"],
  ["another targets", { ...ALL, targets: "Deployments" }, "spec.targets", "crd"],
  ["another onUpdate", { ...ALL, onUpdate: "Always" }, "spec.onUpdate", "crd"],
  ["another onConflict", { ...ALL, onConflict: "Override" }, "spec.onConflict", "crd"],
  ["another enforcement", { ...ALL, enforcement: "Deny" }, "spec.enforcement", "crd"],
];

function impossible(): JsonObject {
  return terms(
    {
      matchExpressions: [
        { key: "zone", operator: "In", values: ["a"] },
        { key: "zone", operator: "NotIn", values: ["a"] },
      ],
    },
    {
      matchExpressions: [
        { key: "cores", operator: "Gt", values: ["8"] },
        { key: "cores", operator: "Lt", values: ["9"] },
      ],
    },
  );
}

/** Specs that must be accepted without warnings. */
export const GOOD_SPECS: readonly (readonly [what: string, spec: JsonObject])[] = [
  ["values", { ...ALL, nodeSelector: { "a.b/c": "", d: "e" }, priority: -5, failurePolicy: "Fail" }],
  [
    "names",
    { ...ALL, schedulerName: "my-scheduler", priorityClassName: "system.high", runtimeClassName: "gvisor" },
  ],
  ["a schedulerName that is not a valid object name", { ...ALL, schedulerName: "MyScheduler (batch)" }],
  [
    "four thousand nodes by name",
    {
      ...ALL,
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  {
                    key: "kubernetes.io/hostname",
                    operator: "In",
                    values: Array.from({ length: 4_096 }, (_, i) => `node-${i}`),
                  },
                ],
              },
            ],
          },
        },
      },
    },
  ],
  [
    "as many terms, labels and tolerations as a policy may have",
    {
      ...ALL,
      nodeSelector: Object.fromEntries(Array.from({ length: 1_024 }, (_, i) => [`key-${i}`, "x"])),
      tolerations: Array.from({ length: 512 }, (_, i) => ({ key: `key-${i}`, operator: "Exists" })),
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: Array.from({ length: 128 }, (_, i) => ({
              matchExpressions: [{ key: "pool", operator: "In", values: [`pool-${i}`] }],
            })),
          },
        },
      },
    },
  ],
  ["a node alone", { ...ALL, nodeName: "node-1.example" }],
  [
    "empty names, which count as absent",
    { ...ALL, nodeName: "", schedulerName: "", nodeSelector: { a: "b" } },
  ],
  [
    "all words",
    {
      ...ALL,
      nodeSelector: { a: "b" },
      targets: "Pods",
      onUpdate: "Inject",
      onConflict: "Refuse",
      enforcement: "Warn",
    },
  ],
  [
    "every kind of node requirement",
    terms({
      matchExpressions: [
        { key: "zone", operator: "In", values: ["a", "b"] },
        { key: "disk", operator: "NotIn", values: ["slow"] },
        { key: "pool", operator: "Exists" },
        { key: "old", operator: "DoesNotExist", values: [] },
        { key: "cores", operator: "Gt", values: ["8"] },
        { key: "age", operator: "Lt", values: ["9"] },
      ],
      matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["n".repeat(70)] }],
    }),
  ],
  [
    "a preference",
    preferring({ weight: 100, preference: { matchExpressions: [{ key: "a", operator: "Exists" }] } }),
  ],
  [
    "a pod term with all fields",
    near({
      topologyKey: "topology.kubernetes.io/zone",
      labelSelector: { matchLabels: { app: "x" } },
      namespaceSelector: {},
      namespaces: ["shop"],
      matchLabelKeys: ["pod-template-hash"],
      mismatchLabelKeys: ["tenant"],
    }),
  ],
  ["a pod preference", away({ weight: 1, podAffinityTerm: { topologyKey: "kubernetes.io/hostname" } })],
  [
    "tolerations",
    bearing(
      { operator: "Exists" },
      { key: "a", value: "b", effect: "NoExecute", tolerationSeconds: 5 },
      { key: "c", operator: "", effect: "" },
      { key: "d", operator: "Gt", value: "-5" },
    ),
  ],
  [
    "spreads",
    spreading(SPREAD, {
      ...SPREAD,
      whenUnsatisfiable: "ScheduleAnyway",
      nodeAffinityPolicy: "Ignore",
      nodeTaintsPolicy: "Honor",
      matchLabelKeys: ["pod-template-hash"],
    }),
  ],
  ["gates", { ...ALL, schedulingGates: [{ name: "example.com/ready" }, { name: "b" }] }],
  [
    "nulls, which the API server treats as absent",
    { ...ALL, nodeSelector: { a: "b" }, priority: null, affinity: null, tolerations: null },
  ],
];
