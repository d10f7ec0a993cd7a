import { z } from "zod";
import type { PolicyRef } from "../../core/finding.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { Kind, KindVersion } from "../../core/kind.ts";
import { affinity, labelMap, labelSelector, toleration } from "../../core/kubernetes/schemas.ts";
import { caution, type Problem } from "../../core/problem.ts";
import { type PlacementPolicy, preparePolicy } from "./policy.ts";
import { policyStatus } from "./status.ts";

/** Group, kinds and fields are kupid's own, so that existing manifests apply unchanged. */
export const GROUP = "kupid.gardener.cloud";

const criteria = {
  podSelector: labelSelector
    .nullish()
    .describe(
      "Which pods, by their labels; for a controller the labels of its pod template. Absent: none. Empty: all.",
    ),
  nodeSelector: labelMap
    .nullish()
    .describe("Labels that a node must carry. A key that the pod sets itself stays the pod's."),
  nodeName: z.string().max(253).nullish().describe("The node to run on."),
  affinity: affinity
    .nullish()
    .describe("Node affinity, pod affinity and pod anti-affinity to merge into the pod."),
  schedulerName: z.string().max(253).nullish().describe("The scheduler to use."),
  tolerations: z.array(toleration).max(64).nullish().describe("Tolerations to add."),
  // 32 bits, as PriorityClass values have; the extremes are of no use to anyone.
  priority: z
    .int()
    .min(-1_000_000_000)
    .max(1_000_000_000)
    .nullish()
    .describe("Which policy goes first where two set the same field: the higher one. Default 0."),
  failurePolicy: z
    .enum(["Ignore", "Fail"])
    .nullish()
    .describe(
      "What happens to an object when it can't be known whether this policy wants it: Ignore lets it pass without this policy and with a warning, Fail refuses it. Default Ignore.",
    ),
};

const namespaced = z.strictObject(criteria);
const clusterWide = z.strictObject({
  ...criteria,
  namespaceSelector: labelSelector
    .nullish()
    .describe(
      "Which namespaces, by their labels. Absent: none, so that the policy has no effect. Empty: all.",
    ),
});

const version = (spec: z.ZodType): KindVersion => ({
  name: "v1alpha1",
  storage: true,
  spec,
  status: policyStatus,
  columns: [
    {
      name: "Priority",
      type: "integer",
      jsonPath: ".spec.priority",
      description: "The higher one goes first.",
    },
    {
      name: "Matched",
      type: "integer",
      jsonPath: ".status.matched",
      description: "Requests in which it wanted the object.",
    },
    {
      name: "Applied",
      type: "integer",
      jsonPath: ".status.applied",
      description: "Requests in which it changed the object.",
    },
    {
      name: "Valid",
      type: "string",
      jsonPath: '.status.conditions[?(@.type=="Valid")].status',
      description: "Whether usher can use all of it.",
    },
    { name: "Last applied", type: "date", jsonPath: ".status.lastApplied", priority: 1 },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ],
});

/** Criteria that the kinds have and this version does not apply: said aloud, because silence would look like success. */
const NOT_YET = ["nodeName", "affinity", "schedulerName", "tolerations"] as const;

const SELECTORS = { Namespaced: ["podSelector"], Cluster: ["podSelector", "namespaceSelector"] } as const;

function check(scope: "Cluster" | "Namespaced"): (object: JsonObject) => Problem[] {
  return (object) => {
    const spec = isObject(object["spec"]) ? object["spec"] : {};
    // What makes a policy unusable once it is there is a reason not to let it in.
    const problems = [...preparePolicy(object, { kind: "", name: "" }, scope).problems];
    for (const selector of SELECTORS[scope]) {
      if (spec[selector] === undefined || spec[selector] === null) {
        problems.push(
          caution(
            ["spec", selector],
            "is missing, so this policy selects nothing and has no effect",
            `write ${selector}: {} to select all`,
          ),
        );
      }
    }
    for (const field of NOT_YET) {
      if (spec[field] !== undefined && spec[field] !== null) {
        problems.push(caution(["spec", field], "is not applied by this version of usher; nodeSelector is"));
      }
    }
    return problems;
  };
}

export const podSchedulingPolicy: Kind<PlacementPolicy> = {
  group: GROUP,
  kind: "PodSchedulingPolicy",
  plural: "podschedulingpolicies",
  singular: "podschedulingpolicy",
  shortNames: ["podsp"],
  scope: "Namespaced",
  standing: "resource",
  summary: "scheduling criteria for the pods of one namespace",
  versions: [version(namespaced)],
  check: check("Namespaced"),
  prepare: (object, ref: PolicyRef) => preparePolicy(object, ref, "Namespaced"),
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
  versions: [version(clusterWide)],
  check: check("Cluster"),
  prepare: (object, ref: PolicyRef) => preparePolicy(object, ref, "Cluster"),
};
