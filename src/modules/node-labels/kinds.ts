import { z } from "zod";
import { isObject, type JsonObject } from "../../core/json.ts";
import { KEY_LENGTH, LABEL_LENGTH } from "../../core/kubernetes/schemas/bounds.ts";
import { labelSelector } from "../../core/kubernetes/schemas.ts";
import { TAINT_EFFECTS } from "../../core/kubernetes/taints.ts";
import { contradictorySelector } from "../../core/policy/empty-selector.ts";
import type { Kind } from "../../core/policy/kind.ts";
import type { Problem } from "../../core/policy/problem.ts";
import { ownershipStatus, ruleStatus } from "./reconcile/status.ts";
import { prepareOwnership } from "./rules/ownership.ts";
import { PATTERN_LENGTH } from "./rules/pattern.ts";
import { prepareRule } from "./rules/rule.ts";
import type { RulePolicy } from "./rules/rule-index.ts";
import { inertHere, ruleWarnings } from "./rules/rule-warnings.ts";

/** Group, kinds and fields are node-label-operator's own, so that its manifests apply unchanged. */
const GROUP = "node-labels.openshift.io";
const VERSION = "v1beta1";

/** Enough to name each node of a large site; more need several rules. */
const MOST_PATTERNS = 256;
/** Far more labels or annotations than one rule has in practice; taints are fewer. */
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
    value: z
      .string()
      .max(LABEL_LENGTH)
      .optional()
      .describe("The value of the taint. Defaults to the empty string."),
    effect: z
      .enum([...TAINT_EFFECTS] as [string, ...string[]])
      .describe("The effect of the taint on pods that do not tolerate it."),
  })
  .describe("A taint to set on matching nodes.");

const ruleSpec = z.strictObject({
  nodeNamePatterns: z
    .array(z.string().max(PATTERN_LENGTH))
    .max(MOST_PATTERNS)
    .optional()
    .describe(
      "Selects nodes by name: regular expressions in Go's syntax, any of which must match the whole name.",
    ),
  nodeSelector: labelSelector
    .optional()
    .describe(
      "Selects nodes by labels that no rule sets and no OwnedLabels owns. If nodeNamePatterns are given as well, both must match.",
    ),
  labels: map(z.string().max(LABEL_LENGTH), "Labels to set on matching nodes, by key.").optional(),
  annotations: map(
    z.string().max(ANNOTATION_LENGTH),
    "Annotations to set on matching nodes, by key. Annotations that usher set are removed with the rule.",
  ).optional(),
  taints: z
    .array(taint)
    .max(MOST_TAINTS)
    .optional()
    .describe("Taints to set on matching nodes. Taints that usher set are removed with the rule."),
  // The range of user-defined PriorityClass values.
  priority: z
    .int()
    .min(-1_000_000_000)
    .max(1_000_000_000)
    .optional()
    .describe("Precedence where two rules set the same key: the higher priority wins. Defaults to 0."),
  startupTaint: z
    .boolean()
    .optional()
    .describe(
      "Whether a new node has the startup taint until usher has verified its labels. Defaults to false; nodes with labels that can only be set after registration always have it.",
    ),
});

export const labels: Kind<RulePolicy> = {
  group: GROUP,
  kind: "Labels",
  plural: "labels",
  singular: "labels",
  scope: "Namespaced",
  reach: "Cluster",
  standing: "resource",
  summary: "sets labels, annotations and taints on nodes by name; applies to all nodes of the cluster",
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
          description: "Number of nodes that the rule matches.",
        },
        {
          name: "Conflicts",
          type: "integer",
          jsonPath: ".status.conflictCount",
          description: "Number of keys that another rule sets to a different value.",
        },
        { name: "Priority", type: "integer", jsonPath: ".spec.priority", priority: 1 },
        {
          name: "Valid",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Valid")].status',
          description: "Whether the whole rule is valid.",
        },
        {
          name: "Applied",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Applied")].status',
          description: "Whether all matching nodes could be written.",
        },
        { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      ],
    },
  ],
  check: (object, _view, installation) => [
    ...prepareRule(object, UNNAMED).problems,
    ...ruleWarnings(specOf(object)),
    ...contradictorySelector(prepareRule(object, UNNAMED).policy?.selector, ["spec", "nodeSelector"]),
    ...inertHere(object, installation),
  ],
  sample: () => ({
    name: "edge-nodes",
    namespace: "usher-system",
    spec: { nodeNamePatterns: ["edge-.*"], labels: { "example.com/pool": "edge" } },
    cases: [
      {
        name: "a node of the edge gets the label of its pool",
        object: { apiVersion: "v1", kind: "Node", metadata: { name: "edge-1" } },
        expect: { verdict: "patch", fields: { "metadata.labels[example.com/pool]": "edge" } },
      },
      {
        name: "another node is left alone",
        object: { apiVersion: "v1", kind: "Node", metadata: { name: "core-1" } },
        expect: { verdict: "allow" },
      },
    ],
  }),
  // A CRD can't validate a regular expression.
  refused: { nodeNamePatterns: ["("], labels: { "example.com/label": "" } },
  prepare: prepareRule,
};

const ownershipSpec = z.strictObject({
  domain: z
    .string()
    .max(253)
    .optional()
    .describe(
      "The domain of owned labels: the part of the key before the slash. Defaults to every domain that does not belong to Kubernetes.",
    ),
  namePattern: z
    .string()
    .max(PATTERN_LENGTH)
    .optional()
    .describe(
      "The names of owned labels: a regular expression in Go's syntax that must match the whole part of the key after the slash. Defaults to every name.",
    ),
});

export const ownedLabels: Kind<RulePolicy> = {
  group: GROUP,
  kind: "OwnedLabels",
  plural: "ownedlabels",
  singular: "ownedlabels",
  scope: "Namespaced",
  reach: "Cluster",
  standing: "resource",
  summary: "owns labels of nodes: those that no Labels object sets are removed",
  versions: [
    {
      name: VERSION,
      storage: true,
      spec: ownershipSpec,
      status: ownershipStatus,
      celRules: [
        {
          rule: "has(self.domain) || has(self.namePattern)",
          message: "domain, namePattern, or both are required: without them every label would be owned",
        },
      ],
      columns: [
        { name: "Domain", type: "string", jsonPath: ".spec.domain" },
        { name: "Name pattern", type: "string", jsonPath: ".spec.namePattern" },
        {
          name: "Valid",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Valid")].status',
          description: "Whether the OwnedLabels is valid.",
        },
        { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
      ],
    },
  ],
  check: (object, _view, installation): Problem[] => [
    ...prepareOwnership(object, UNNAMED).problems,
    ...inertHere(object, installation),
  ],
  sample: () => ({
    name: "site-labels",
    namespace: "usher-system",
    spec: { domain: "example.com" },
    cases: [
      {
        name: "a label of the domain that no rule sets is removed",
        operation: "RECONCILE",
        object: { apiVersion: "v1", kind: "Node", metadata: { name: "a", labels: SITE_LABELS } },
        expect: {
          verdict: "patch",
          removed: ["metadata.labels[example.com/site]"],
          untouched: ["metadata.labels[example.org/site]"],
        },
      },
    ],
  }),
  prepare: prepareOwnership,
};

const SITE_LABELS = { "example.com/site": "north", "example.org/site": "north" };

const UNNAMED = { kind: "", name: "" };

function specOf(object: JsonObject): JsonObject {
  return isObject(object["spec"]) ? object["spec"] : {};
}
