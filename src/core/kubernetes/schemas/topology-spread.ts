import { z } from "zod";
import { atomicList, celRules, KEY_LENGTH, LABEL_KEY_PATTERN, MAX_NAMES, MAX_TERMS } from "./bounds.ts";
import { labelSelector } from "./selector.ts";

const INT32_MAX = 2 ** 31 - 1;
const INCLUSION_POLICIES = ["Honor", "Ignore"] as const;

export const topologySpreadConstraint = z
  .strictObject({
    maxSkew: z
      .int()
      .min(1)
      .max(INT32_MAX)
      .describe("How many more matching pods one place may have than the place with the fewest."),
    topologyKey: z.string().min(1).max(KEY_LENGTH).meta({
      description:
        "The node label that defines a topology domain: nodes with the same value are in the same domain.",
      pattern: LABEL_KEY_PATTERN,
    }),
    whenUnsatisfiable: z
      .enum(["DoNotSchedule", "ScheduleAnyway"])
      .describe("How to treat a pod that can't be placed within maxSkew."),
    labelSelector: labelSelector.nullish().describe("Selects the pods that are counted."),
    minDomains: z
      .int()
      .min(1)
      .max(INT32_MAX)
      .nullish()
      .describe("With fewer domains than this, the global minimum is treated as 0. Only with DoNotSchedule."),
    nodeAffinityPolicy: z
      .enum(INCLUSION_POLICIES)
      .nullish()
      .describe(
        "Whether nodes that the pod's nodeSelector or affinity excludes are left out (Honor, the default).",
      ),
    nodeTaintsPolicy: z
      .enum(INCLUSION_POLICIES)
      .nullish()
      .describe(
        "Whether nodes with taints that the pod does not tolerate are left out. Ignore is the default.",
      ),
    matchLabelKeys: atomicList(
      z.string().min(1).max(KEY_LENGTH).meta({ pattern: LABEL_KEY_PATTERN }),
      MAX_NAMES,
      "Label keys whose values of the incoming pod the counted pods must have.",
    ),
  })
  .meta({
    description: "How evenly pods are spread over places.",
    ...celRules(
      {
        rule: "!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
        message: "minDomains requires whenUnsatisfiable: DoNotSchedule",
        fieldPath: ".minDomains",
      },
      {
        rule: "!has(self.matchLabelKeys) || self.matchLabelKeys.size() == 0 || has(self.labelSelector)",
        message: "matchLabelKeys requires labelSelector",
        fieldPath: ".matchLabelKeys",
      },
    ),
  });

/** As in a pod: one constraint for each topology and strictness, which is also the list map key of server-side apply. */
export const topologySpreadConstraints = z
  .array(topologySpreadConstraint)
  .max(MAX_TERMS)
  .meta({
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["topologyKey", "whenUnsatisfiable"],
  });
