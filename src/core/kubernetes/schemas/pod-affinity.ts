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
  message: `${field} extends labelSelector, and there is none`,
  fieldPath: `.${field}`,
});

export const podAffinityTerm = z
  .strictObject({
    labelSelector: labelSelector.nullish().describe("Selects the other pods. Absent, it selects none."),
    namespaces: atomicList(
      z.string().min(1).max(LABEL_LENGTH).meta({ pattern: DNS_LABEL_PATTERN }),
      MAX_NAMES,
      "Namespaces in which to look for the other pods, beside those of namespaceSelector. " +
        "Without either, the pod's own.",
    ),
    namespaceSelector: labelSelector
      .nullish()
      .describe("Selects namespaces in which to look for the other pods. Empty, it selects all."),
    topologyKey: labelKey.describe(
      "The node label whose value makes a place: nodes with the same value are the same place.",
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
    description: "Other pods, and what counts as the same place as theirs.",
    ...celRules(needsSelector("matchLabelKeys"), needsSelector("mismatchLabelKeys")),
  });

const weightedTerm = z
  .strictObject({
    weight,
    podAffinityTerm: podAffinityTerm.describe("The other pods, and what counts as the same place."),
  })
  .describe("A preference about other pods, and its weight.");

export const podAffinity = z
  .strictObject({
    requiredDuringSchedulingIgnoredDuringExecution: atomicList(
      podAffinityTerm,
      MAX_TERMS,
      "Pods beside which the pod must be placed. All terms must hold when it is scheduled.",
    ),
    preferredDuringSchedulingIgnoredDuringExecution: atomicList(
      weightedTerm,
      MAX_TERMS,
      "Pods near which the pod is better placed: the weights of all terms that hold are added up.",
    ),
  })
  .describe("Draws a pod to places where certain other pods run.");

export const podAntiAffinity = z
  .strictObject({
    requiredDuringSchedulingIgnoredDuringExecution: atomicList(
      podAffinityTerm,
      MAX_TERMS,
      "Pods beside which the pod must not be placed. All terms must hold when it is scheduled.",
    ),
    preferredDuringSchedulingIgnoredDuringExecution: atomicList(
      weightedTerm,
      MAX_TERMS,
      "Pods from which the pod is better kept away: the weights of all terms that hold are added up.",
    ),
  })
  .describe("Keeps a pod away from places where certain other pods run.");
