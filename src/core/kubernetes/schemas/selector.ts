import { z } from "zod";
import {
  atomicList,
  celRules,
  KEY_LENGTH,
  LABEL_KEY_PATTERN,
  LABEL_LENGTH,
  LABEL_VALUE_PATTERN,
  labels,
  MAX_REQUIREMENTS,
  MAX_VALUES,
  SET_VALUES,
} from "./bounds.ts";

export const LABEL_OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"] as const;

/** `{key: value}` pairs, such as a nodeSelector. Other functions check whether keys and values are well formed. */
export const labelMap = labels("Labels by key. All of them must match.");

const labelRequirement = z
  .strictObject({
    key: z
      .string()
      .min(1)
      .max(KEY_LENGTH)
      .meta({ description: "The label key that the requirement applies to.", pattern: LABEL_KEY_PATTERN }),
    operator: z
      .enum(LABEL_OPERATORS)
      .describe(
        "How the label is compared: In and NotIn with the values, Exists and DoesNotExist without any.",
      ),
    values: atomicList(
      z.string().max(LABEL_LENGTH).meta({ pattern: LABEL_VALUE_PATTERN }),
      MAX_VALUES,
      "The values to compare with: at least one for In and NotIn. Must be empty for Exists and DoesNotExist.",
    ),
  })
  .meta({ description: "One condition on one label.", ...celRules(...SET_VALUES) });

/**
 * Atomic: half of one selector and half of another would select objects that neither author intended. An absent
 * selector selects nothing, an empty one everything.
 */
export const labelSelector = z
  .strictObject({
    matchLabels: labels("Labels that must be there with exactly these values.").nullish(),
    matchExpressions: atomicList(
      labelRequirement,
      MAX_REQUIREMENTS,
      "Further requirements on labels. All must match, together with matchLabels.",
    ),
  })
  .meta({
    description:
      "Selects objects by their labels. An empty selector selects all objects, an absent one selects none.",
    "x-kubernetes-map-type": "atomic",
  });
