import { z } from "zod";
import { isObject, type JsonObject } from "../../core/json.ts";
import { KEY_LENGTH, LABEL_LENGTH } from "../../core/kubernetes/schemas/bounds.ts";
import { labelSelector } from "../../core/kubernetes/schemas.ts";
import { TAINT_EFFECTS } from "../../core/kubernetes/taints.ts";
import type { Kind } from "../../core/policy/kind.ts";
import type { Problem } from "../../core/policy/problem.ts";
import { ownershipStatus, ruleStatus } from "./reconcile/status.ts";
import { prepareOwnership } from "./rules/ownership.ts";
import { PATTERN_LENGTH } from "./rules/pattern.ts";
import { prepareRule } from "./rules/rule.ts";
import type { Policy } from "./rules/rule-index.ts";
import { inertHere, ruleWarnings } from "./rules/rule-warnings.ts";

/** Group, kinds and fields are node-label-operator's own, so that its manifests apply unchanged. */
const GROUP = "node-labels.openshift.io";
const VERSION = "v1beta1";

/** A rule for each node of a large site fits in; beyond that it is several rules. */
const MOST_PATTERNS = 256;
/** More labels on one node by one rule are a mistake, as are annotations and taints in such numbers. */
const MOST_ENTRIES = 64;
const MOST_TAINTS = 16;
const ANNOTATION_LENGTH = 4_096;

function map(value: z.ZodString, description: string) {
  return z
    .record(z.string().max(KEY_LENGTH), value)
    .refine((entries) => Object.keys(entries).length <= MOST_ENTRIES, {
      error: `has too many entries: at most ${MOST_ENTRIES} are allowed`,
    })
    .meta({ description, maxProperties: MOST_ENTRIES });
}

const taint = z
  .strictObject({
    key: z.string().min(1).max(KEY_LENGTH).describe("The key of the taint."),
    value: z.string().max(LABEL_LENGTH).optional().describe("Its value. Default none."),
    effect: z
      .enum([...TAINT_EFFECTS] as [string, ...string[]])
      .describe("What it does to pods that do not tolerate it."),
  })
  .describe("A taint that the nodes shall have.");

const ruleSpec = z.strictObject({
  nodeNamePatterns: z
    .array(z.string().max(PATTERN_LENGTH))
    .max(MOST_PATTERNS)
    .optional()
    .describe(
      "Which nodes, by name: regular expressions in Go's syntax, any of which must fit the whole name.",
    ),
  nodeSelector: labelSelector
    .optional()
    .describe(
      "Which nodes, by labels that no rule sets and no OwnedLabels owns; together with patterns both must fit. Without patterns it selects alone.",
    ),
  labels: map(z.string().max(LABEL_LENGTH), "Labels to set, by key.").optional(),
  annotations: map(
    z.string().max(ANNOTATION_LENGTH),
    "Annotations to set, by key. What usher set goes with the rule.",
  ).optional(),
  taints: z
    .array(taint)
    .max(MOST_TAINTS)
    .optional()
    .describe("Taints to set. What usher set goes with the rule."),
  // 32 bits, as PriorityClass values have; the extremes are of no use to anyone.
  priority: z
    .int()
    .min(-1_000_000_000)
    .max(1_000_000_000)
    .optional()
    .describe("Which rule wins where two set one key: the higher one. Default 0."),
  startupTaint: z
    .boolean()
    .optional()
    .describe(
      "Whether new nodes keep work away until usher has seen that they are right. Default false; where a label must follow after registration it is so anyway.",
    ),
});

export const labels: Kind<Policy> = {
  group: GROUP,
  kind: "Labels",
  plural: "labels",
  singular: "labels",
  scope: "Namespaced",
  reach: "Cluster",
  standing: "resource",
  summary: "labels, annotations and taints for nodes, by their names; acts on all nodes of the cluster",
  versions: [
    {
      name: VERSION,
      storage: true,
      spec: ruleSpec,
      status: ruleStatus,
      columns: [
        {
          name: "Nodes",
          type: "integer",
          jsonPath: ".status.matchedNodes",
          description: "Nodes that it means.",
        },
        {
          name: "Conflicts",
          type: "integer",
          jsonPath: ".status.conflictCount",
          description: "Keys about which another rule says something else.",
        },
        { name: "Priority", type: "integer", jsonPath: ".spec.priority", priority: 1 },
        {
          name: "Valid",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Valid")].status',
          description: "Whether usher can use all of it.",
        },
        {
          name: "Applied",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Applied")].status',
          description: "Whether all its nodes could be written.",
        },
        { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      ],
    },
  ],
  check: (object, _view, installation) => [
    ...prepareRule(object, NOBODY).problems,
    ...ruleWarnings(specOf(object)),
    ...inertHere(object, installation),
  ],
  prepare: prepareRule,
};

const ownershipSpec = z.strictObject({
  domain: z
    .string()
    .max(253)
    .optional()
    .describe("The part of a label's key before the slash. Absent: any that does not belong to Kubernetes."),
  namePattern: z
    .string()
    .max(PATTERN_LENGTH)
    .optional()
    .describe(
      "The part after the slash: a regular expression in Go's syntax that must fit all of it. Absent: any.",
    ),
});

export const ownedLabels: Kind<Policy> = {
  group: GROUP,
  kind: "OwnedLabels",
  plural: "ownedlabels",
  singular: "ownedlabels",
  scope: "Namespaced",
  reach: "Cluster",
  standing: "resource",
  summary: "labels that nodes have only because a Labels object says so; others of them are removed",
  versions: [
    {
      name: VERSION,
      storage: true,
      spec: ownershipSpec,
      status: ownershipStatus,
      celRules: [
        {
          rule: "has(self.domain) || has(self.namePattern)",
          message: "domain, namePattern, or both must be given: without either it would own every label",
        },
      ],
      columns: [
        { name: "Domain", type: "string", jsonPath: ".spec.domain" },
        { name: "Name pattern", type: "string", jsonPath: ".spec.namePattern" },
        {
          name: "Valid",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Valid")].status',
          description: "Whether usher can use it.",
        },
        { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      ],
    },
  ],
  check: (object, _view, installation): Problem[] => [
    ...prepareOwnership(object, NOBODY).problems,
    ...inertHere(object, installation),
  ],
  prepare: prepareOwnership,
};

const NOBODY = { kind: "", name: "" };

function specOf(object: JsonObject): JsonObject {
  return isObject(object["spec"]) ? object["spec"] : {};
}
