import { z } from "zod";
import {
  atomicList,
  celRules,
  DNS_LABEL_PATTERN,
  KEY_LENGTH,
  LABEL_KEY_PATTERN,
  LABEL_LENGTH,
  MAX_NAMES,
  MAX_TERMS,
} from "./bounds.ts";
import { weight } from "./node-affinity.ts";
import { labelSelector } from "./selector.ts";

const labelKey = z.string().min(1).max(KEY_LENGTH).meta({ pattern: LABEL_KEY_PATTERN });

const needsSelector = (field: string) => ({
  rule: `!has(self.${field}) || self.${field}.size() == 0 || has(self.labelSelector)`,
  message: `${field} requires labelSelector`,
  fieldPath: `.${field}`,
});

export const podAffinityTerm = z
  .strictObject({
    labelSelector: labelSelector.nullish().describe("Selects the other pods. If absent, it selects none."),
    namespaces: atomicList(
      z.string().min(1).max(LABEL_LENGTH).meta({ pattern: DNS_LABEL_PATTERN }),
      MAX_NAMES,
      "Namespaces of the other pods, in addition to those of namespaceSelector." +
        "If both are absent, the pod's own namespace.",
    ),
    namespaceSelector: labelSelector
      .nullish()
      .describe("Selects namespaces of the other pods. If empty, it selects all."),
    topologyKey: labelKey.describe(
      "The node label that defines a topology domain: nodes with the same value are in the same domain.",
    ),
    matchLabelKeys: atomicList(
      labelKey,
      MAX_NAMES,
      "Label keys whose values of the incoming pod the other pods must have. " + "Needs labelSelector.",
    ),
    mismatchLabelKeys: atomicList(
      labelKey,
      MAX_NAMES,
      "Label keys whose values of the incoming pod the other pods must not have. " + "Needs labelSelector.",
    ),
  })
  .meta({
    description: "Other pods, and the topology domain to share with them.",
    ...celRules(needsSelector("matchLabelKeys"), needsSelector("mismatchLabelKeys")),
  });

const weightedTerm = z
  .strictObject({
    weight,
    podAffinityTerm: podAffinityTerm.describe("The other pods, and the topology domain."),
  })
  .describe("A preference about other pods, and its weight.");

export const podAffinity = z
  .strictObject({
    requiredDuringSchedulingIgnoredDuringExecution: atomicList(
      podAffinityTerm,
      MAX_TERMS,
      "Pods that the pod must be co-located with. All terms must hold when it is scheduled.",
    ),
    preferredDuringSchedulingIgnoredDuringExecution: atomicList(
      weightedTerm,
      MAX_TERMS,
      "Pods that the pod should be co-located with: the weights of all terms that hold are added up.",
    ),
  })
  .describe("Pod affinity: attracts a pod to topology domains where certain other pods run.");

export const podAntiAffinity = z
  .strictObject({
    requiredDuringSchedulingIgnoredDuringExecution: atomicList(
      podAffinityTerm,
      MAX_TERMS,
      "Pods that the pod must not be co-located with. All terms must hold when it is scheduled.",
    ),
    preferredDuringSchedulingIgnoredDuringExecution: atomicList(
      weightedTerm,
      MAX_TERMS,
      "Pods that the pod should not be co-located with: the weights of all terms that hold are added up.",
    ),
  })
  .describe("Pod anti-affinity: keeps a pod away from topology domains where certain other pods run.");
