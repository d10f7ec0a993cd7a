import { z } from "zod";
import {
  atomicList,
  celRules,
  KEY_LENGTH,
  LABEL_KEY_PATTERN,
  LABEL_LENGTH,
  LABEL_VALUE_PATTERN,
  MAX_REQUIRED_TERMS,
  MAX_REQUIREMENTS,
  MAX_TERMS,
  MAX_VALUES,
  NAME_LENGTH,
  SET_VALUES,
  SUBDOMAIN_PATTERN,
} from "./bounds.ts";
import { LABEL_OPERATORS } from "./selector.ts";

export const NODE_OPERATORS = [...LABEL_OPERATORS, "Gt", "Lt"] as const;

/** Weights are added up over terms and scaled by the scheduler; Kubernetes allows 1 to 100. */
export const weight = z
  .int()
  .min(1)
  .max(100)
  .describe("How much the preference counts against others, from 1 to 100.");

const nodeRequirement = z
  .strictObject({
    key: z
      .string()
      .min(1)
      .max(KEY_LENGTH)
      .meta({ description: "The node label that the requirement applies to.", pattern: LABEL_KEY_PATTERN }),
    operator: z
      .enum(NODE_OPERATORS)
      .describe(
        "How it is compared: In and NotIn with a list, Gt and Lt with one whole number, Exists and DoesNotExist alone.",
      ),
    values: atomicList(
      z.string().max(LABEL_LENGTH).meta({ pattern: LABEL_VALUE_PATTERN }),
      MAX_VALUES,
      "The values to compare with: at least one for In and NotIn, exactly one for Gt and Lt, none otherwise.",
    ),
  })
  .meta({
    description: "One condition on a label of a node.",
    ...celRules(...SET_VALUES, {
      rule: "!(self.operator in ['Gt', 'Lt']) || (has(self.values) && self.values.size() == 1 && self.values[0].matches('^[0-9]+$'))",
      message: "Gt and Lt need exactly one value, a whole number",
      fieldPath: ".values",
    }),
  });

/** A field is compared with the name of a node, which may be longer than a label's value. */
const fieldRequirement = z
  .strictObject({
    key: z.enum(["metadata.name"]).describe("The node field that the requirement applies to: its name."),
    operator: z.enum(["In", "NotIn"]).describe("Whether to select this node, or all others."),
    values: z
      .array(z.string().max(NAME_LENGTH).meta({ pattern: SUBDOMAIN_PATTERN }))
      .min(1)
      .max(1)
      .meta({ description: "The name of the node.", "x-kubernetes-list-type": "atomic" }),
  })
  .describe("One condition on the name of a node.");

export const nodeSelectorTerm = z
  .strictObject({
    matchExpressions: atomicList(nodeRequirement, MAX_REQUIREMENTS, "Conditions on the node's labels."),
    matchFields: atomicList(
      fieldRequirement,
      MAX_REQUIREMENTS,
      "Conditions on the node's fields. Only metadata.name exists, with In or NotIn and one value.",
    ),
  })
  .meta({
    description: "Requirements, all of which must match. A term without requirements matches no node.",
    "x-kubernetes-map-type": "atomic",
  });

const nodeSelector = z
  .strictObject({
    nodeSelectorTerms: z
      .array(nodeSelectorTerm)
      .min(1)
      .max(MAX_REQUIRED_TERMS)
      .meta({ description: "Terms, one of which must match.", "x-kubernetes-list-type": "atomic" }),
  })
  .meta({
    description: "The nodes that are allowed: those that at least one term matches.",
    "x-kubernetes-map-type": "atomic",
  });

const preferredNodeTerm = z
  .strictObject({ weight, preference: nodeSelectorTerm.describe("The nodes that are preferred.") })
  .describe("A preference for some nodes, and its weight.");

export const nodeAffinity = z
  .strictObject({
    requiredDuringSchedulingIgnoredDuringExecution: nodeSelector
      .nullish()
      .describe("Nodes that the pod must be scheduled to. Running pods are not affected."),
    preferredDuringSchedulingIgnoredDuringExecution: atomicList(
      preferredNodeTerm,
      MAX_TERMS,
      "Nodes that are better than others: the weights of all matching preferences are added up.",
    ),
  })
  .describe("Which nodes a pod may or should run on.");
