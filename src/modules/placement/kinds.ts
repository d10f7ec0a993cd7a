import type { z } from "zod";
import { at, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { contradictorySelector } from "../../core/policy/empty-selector.ts";
import type { CelRule, ChangedAnswer, Kind, KindVersion, Sample } from "../../core/policy/kind.ts";
import type { PolicyRef } from "../../core/policy/policy-ref.ts";
import { idle, PROBLEM } from "../../core/policy/problem.ts";
import { REFUSED_SPEC } from "./criteria/criteria.ts";
import { labelKeys } from "./criteria/label-keys.ts";
import { nodeWarnings } from "./criteria/selected-nodes.ts";
import { type PlacementPolicy, preparePolicy } from "./policy/policy.ts";
import { policyWarnings } from "./policy/policy-warnings.ts";
import { CEL_RULES, clusterWide, namespaced } from "./policy/spec-schema.ts";
import { unreachedWarnings } from "./policy/unreached.ts";
import { policyStatus } from "./status/status.ts";

/** Group, kinds and fields are kupid's own, so that existing manifests apply unchanged. */
export const GROUP = "kupid.gardener.cloud";

const version = (spec: z.ZodType, rules: readonly CelRule[]): KindVersion => ({
  name: "v1alpha1",
  storage: true,
  spec,
  status: policyStatus,
  celRules: rules,
  columns: [
    {
      name: "Priority",
      type: "integer",
      jsonPath: ".spec.priority",
      description: "Precedence among policies: the highest is applied first.",
    },
    {
      name: "Matched",
      type: "integer",
      jsonPath: ".status.matched",
      description: "Requests for objects that the policy selected.",
    },
    {
      name: "Applied",
      type: "integer",
      jsonPath: ".status.applied",
      description: "Requests in which the policy changed the object.",
    },
    {
      name: "Valid",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Valid")].status',
      description: "Whether the policy is valid.",
    },
    {
      name: "Effective",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Effective")].status',
      description: "Whether the policy can select any object.",
      priority: 1,
    },
    {
      name: "Skipped",
      type: "integer",
      jsonPath: ".status.skipped",
      description: "Requests in which part of the policy was skipped.",
      priority: 1,
    },
    {
      name: "Nodes",
      type: "integer",
      jsonPath: ".status.nodes",
      description: "Nodes that the policy leaves to the objects that it selects.",
      priority: 1,
    },
    { name: "Last applied", type: "date", jsonPath: ".status.lastApplied", priority: 1 },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ],
});

const CHANGED_ANSWER: ChangedAnswer = {
  field: "failurePolicy",
  concerns: (object) =>
    at(object, "spec", "enforcement") === "Refuse" && (at(object, "spec", "failurePolicy") ?? null) === null,
  meaning:
    "enforcement is Refuse and failurePolicy is absent: in the namespaces that the policy selects, objects are refused while usher does not answer; set failurePolicy: Ignore to admit them unjudged as before",
};

const SELECTORS = { Namespaced: ["podSelector"], Cluster: ["podSelector", "namespaceSelector"] } as const;

function refOf(scope: "Cluster" | "Namespaced", object: JsonObject): PolicyRef {
  const namespace = stringAt(object, "metadata", "namespace") ?? "default";
  return { kind: "", name: "", ...(scope === "Namespaced" ? { namespace } : {}) };
}

function check(scope: "Cluster" | "Namespaced"): NonNullable<Kind["check"]> {
  return (object, view, installation) => {
    const spec = isObject(object["spec"]) ? object["spec"] : {};
    // Problems that would make a stored policy unusable are reasons to refuse it.
    const { policy, problems: found } = preparePolicy(object, refOf(scope, object), scope);
    const problems = [...found];
    for (const selector of SELECTORS[scope]) {
      if (spec[selector] === undefined || spec[selector] === null) {
        problems.push(
          idle(
            PROBLEM.matchesNothing,
            ["spec", selector],
            "is missing: the policy selects nothing and has no effect",
            `use ${selector}: {} to select everything`,
          ),
        );
      }
    }
    if (policy !== undefined && !problems.some(({ severity }) => severity === "error"))
      problems.push(
        ...policyWarnings(policy),
        ...contradictorySelector(policy.podSelector, ["spec", "podSelector"]),
        ...(scope === "Cluster"
          ? contradictorySelector(policy.namespaceSelector, ["spec", "namespaceSelector"])
          : []),
        ...unreachedWarnings(policy, view, installation),
        ...nodeWarnings(object, view),
      );
    return problems;
  };
}

function podOf(namespace: string, labels?: JsonObject): JsonObject {
  const containers = [{ name: "app", image: "example.com/app:1.0" }];
  const metadata = { name: "app", namespace, ...(labels === undefined ? {} : { labels }) };
  return { apiVersion: "v1", kind: "Pod", metadata, spec: { containers } };
}

const FAST_DISKS: Sample = {
  name: "fast-disks",
  namespace: "shop",
  spec: { podSelector: { matchLabels: { disk: "fast" } }, nodeSelector: { disk: "nvme" } },
  objects: [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "lab" } },
  ],
  cases: [
    {
      name: "a pod that asks for fast disks runs where they are",
      object: podOf("shop", { disk: "fast" }),
      expect: { verdict: "patch", fields: { "spec.nodeSelector.disk": "nvme" } },
    },
    { name: "any other pod runs anywhere", object: podOf("shop"), expect: { verdict: "allow" } },
    {
      name: "a pod of another namespace runs anywhere",
      object: podOf("lab", { disk: "fast" }),
      expect: { verdict: "allow" },
    },
  ],
};

export const podSchedulingPolicy: Kind<PlacementPolicy> = {
  group: GROUP,
  kind: "PodSchedulingPolicy",
  plural: "podschedulingpolicies",
  singular: "podschedulingpolicy",
  shortNames: ["podsp"],
  scope: "Namespaced",
  standing: "resource",
  summary: "scheduling criteria for the pods of one namespace",
  versions: [version(namespaced, CEL_RULES)],
  check: check("Namespaced"),
  sample: () => FAST_DISKS,
  changedAnswer: CHANGED_ANSWER,
  refused: REFUSED_SPEC,
  prepare: (object, ref: PolicyRef) => preparePolicy(object, ref, "Namespaced"),
};

const DATA_TOLERATION = { key: "dedicated", operator: "Equal", value: "data", effect: "NoSchedule" };

const TEAM_POOL: Sample = {
  name: "team-pool",
  spec: {
    podSelector: {},
    namespaceSelector: { matchLabels: { team: "data" } },
    nodeSelector: { pool: "data" },
    tolerations: [DATA_TOLERATION],
  },
  objects: [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "reports", labels: { team: "data" } } },
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop", labels: { team: "shop" } } },
  ],
  cases: [
    {
      name: "a pod of the team runs on its pool",
      object: podOf("reports"),
      expect: {
        verdict: "patch",
        fields: { "spec.nodeSelector": { pool: "data" }, "spec.tolerations": [DATA_TOLERATION] },
      },
    },
    { name: "a pod of another team runs anywhere", object: podOf("shop"), expect: { verdict: "allow" } },
  ],
};

export const clusterPodSchedulingPolicy: Kind<PlacementPolicy> = {
  group: GROUP,
  kind: "ClusterPodSchedulingPolicy",
  plural: "clusterpodschedulingpolicies",
  singular: "clusterpodschedulingpolicy",
  shortNames: ["cpsp"],
  scope: "Cluster",
  standing: "resource",
  summary: "scheduling criteria for pods of selected namespaces",
  versions: [version(clusterWide, [...CEL_RULES, labelKeys("namespaceSelector", "matchLabels")])],
  check: check("Cluster"),
  sample: () => TEAM_POOL,
  changedAnswer: CHANGED_ANSWER,
  refused: REFUSED_SPEC,
  prepare: (object, ref: PolicyRef) => preparePolicy(object, ref, "Cluster"),
};
