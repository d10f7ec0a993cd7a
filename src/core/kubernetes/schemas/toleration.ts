import { z } from "zod";
import {
  celRules,
  KEY_LENGTH,
  LABEL_KEY_PATTERN,
  LABEL_LENGTH,
  LABEL_VALUE_PATTERN,
  orEmpty,
} from "./bounds.ts";

// Empty has the meaning of absent: Kubernetes' own clients write it.
const TOLERATION_OPERATORS = ["Exists", "Equal", "Lt", "Gt", ""] as const;
const TAINT_EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute", ""] as const;

export const toleration = z
  .strictObject({
    key: z
      .string()
      .max(KEY_LENGTH)
      .meta({ pattern: orEmpty(LABEL_KEY_PATTERN) })
      .nullish()
      .describe("The key of the tolerated taints. Empty with operator Exists tolerates every taint."),
    operator: z
      .enum(TOLERATION_OPERATORS)
      .nullish()
      .describe(
        "How a taint's value is compared: Equal (the default), Exists for any value, " +
          "Gt and Lt for taints whose value is a larger or smaller whole number.",
      ),
    value: z
      .string()
      .max(LABEL_LENGTH)
      .nullish()
      .describe("The value to compare the taint's value with. Must be empty for Exists."),
    effect: z
      .enum(TAINT_EFFECTS)
      .nullish()
      .describe("The effect of the tolerated taints. Empty tolerates every effect."),
    tolerationSeconds: z
      .int()
      .nullish()
      .describe(
        "How long a running pod stays after a NoExecute taint appears. Absent means forever; 0 or less means immediate eviction.",
      ),
  })
  .meta({
    description: "Taints of nodes that a pod puts up with.",
    ...celRules(
      {
        rule: "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
        message: "without a key the operator must be Exists, which then bears every taint",
        fieldPath: ".operator",
      },
      {
        rule: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
        message: "with tolerationSeconds the effect must be NoExecute",
        fieldPath: ".effect",
      },
      {
        rule: "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
        message: "the operator Exists takes no value",
        fieldPath: ".value",
      },
      {
        rule: `(has(self.operator) && !(self.operator in ['', 'Equal'])) || !has(self.value) || self.value.matches('${LABEL_VALUE_PATTERN}')`,
        message: "the value of a taint has the form of a label's value",
        fieldPath: ".value",
      },
      {
        rule: "!has(self.operator) || !(self.operator in ['Gt', 'Lt']) || (has(self.value) && self.value.matches('^(0|-?[1-9][0-9]*)$'))",
        message: "Gt and Lt need a whole number without leading zeros or a plus",
        fieldPath: ".value",
      },
    ),
  });
