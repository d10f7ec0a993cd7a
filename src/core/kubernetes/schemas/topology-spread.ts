import { z } from "zod";
import { atomicList, KEY_LENGTH, MAX_NAMES } from "./bounds.ts";
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
    topologyKey: z
      .string()
      .min(1)
      .max(KEY_LENGTH)
      .describe("The node label whose value makes a place: nodes with the same value are the same place."),
    whenUnsatisfiable: z
      .enum(["DoNotSchedule", "ScheduleAnyway"])
      .describe("What to do with a pod that can't be placed within maxSkew."),
    labelSelector: labelSelector.nullish().describe("Selects the pods that are counted."),
    minDomains: z
      .int()
      .min(1)
      .max(INT32_MAX)
      .nullish()
      .describe("With fewer places than this, the fewest is taken to be 0. Only with DoNotSchedule."),
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
      z.string().min(1).max(KEY_LENGTH),
      MAX_NAMES,
      "Label keys whose values are taken from the incoming pod and demanded of the pods that are counted.",
    ),
  })
  .describe("How evenly pods are spread over places.");
