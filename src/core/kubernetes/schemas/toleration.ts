import { z } from "zod";
import { KEY_LENGTH, NAME_LENGTH } from "./bounds.ts";

// Empty is what an absent one means: Kubernetes' own clients write it so.
const TOLERATION_OPERATORS = ["Exists", "Equal", "Lt", "Gt", ""] as const;
const TAINT_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute", ""] as const;

export const toleration = z
  .strictObject({
    key: z
      .string()
      .max(KEY_LENGTH)
      .nullish()
      .describe("The key of the taints that are tolerated. Empty with Exists, it means every taint."),
    operator: z
      .enum(TOLERATION_OPERATORS)
      .nullish()
      .describe(
        "How a taint's value is compared: Equal (the default), Exists for any value, " +
          "Gt and Lt for taints whose value is a larger or smaller whole number.",
      ),
    value: z
      .string()
      .max(NAME_LENGTH)
      .nullish()
      .describe("What the taint's value is compared with. Must be left out for Exists."),
    effect: z
      .enum(TAINT_EFFECTS)
      .nullish()
      .describe("The effect of the taints that are tolerated. Empty, it means every effect."),
    tolerationSeconds: z
      .int()
      .nullish()
      .describe(
        "How long a running pod stays once a NoExecute taint appears. Absent, for ever; 0 or less, not at all.",
      ),
  })
  .describe("Taints of nodes that a pod puts up with.");
