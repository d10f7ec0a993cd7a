import { z } from "zod";
import { labelSelector } from "../../../core/kubernetes/schemas.ts";
import type { CelRule } from "../../../core/policy/kind.ts";
import { CRITERIA, PARENTS } from "../criteria/criteria.ts";
import type { Criterion } from "../criteria/criterion.ts";
import { fromNamespaceSchema } from "../criteria/from-namespace.ts";
import { labelKeys } from "../criteria/label-keys.ts";
import { ENFORCEMENT, FAILURE, ON_CONFLICT, ON_UPDATE, TARGETS } from "./policy.ts";

/** The schemas of criteria, nested as their paths are. */
function schemasOf(criteria: readonly Criterion[], depth = 0): Record<string, z.ZodType> {
  const schemas: Record<string, z.ZodType> = {};
  for (const { path, schema } of criteria) {
    const field = String(path[depth]);
    if (path.length === depth + 1) schemas[field] = schema;
    else if (schemas[field] === undefined) {
      const inside = criteria.filter((one) => one.path[depth] === field);
      const description = PARENTS[path.slice(0, depth + 1).join(".")] ?? "";
      schemas[field] = z
        .strictObject(schemasOf(inside, depth + 1))
        .nullish()
        .describe(description);
    }
  }
  return schemas;
}

const spec = {
  podSelector: labelSelector
    .nullish()
    .describe(
      "Selects pods by their labels; a controller by the labels of its pod template. Absent selects nothing, empty selects everything.",
    ),
  ...schemasOf(CRITERIA),
  targets: z
    .enum(TARGETS)
    .nullish()
    .describe(
      "Which objects the criteria are added to: Pods when they are created, Templates of the controllers that create pods, or Both. Defaults to Both.",
    ),
  onUpdate: z
    .enum(ON_UPDATE)
    .nullish()
    .describe(
      "What an update gets. Restore adds back what this policy had added and the update dropped. Inject adds what the policy wants now, which may roll out pods. Defaults to Restore.",
    ),
  onConflict: z
    .enum(ON_CONFLICT)
    .nullish()
    .describe(
      "What happens when the pod, or a policy of higher precedence, has another value. Skip keeps it with a warning, Refuse refuses the object. Defaults to Skip.",
    ),
  // 32 bits, as PriorityClass values have; the extremes are reserved.
  priority: z
    .int()
    .min(-1_000_000_000)
    .max(1_000_000_000)
    .nullish()
    .describe(
      "Precedence among policies that set the same field: the highest is applied first. Defaults to 0.",
    ),
  failurePolicy: z
    .enum(FAILURE)
    .nullish()
    .describe(
      "What happens when usher is unavailable, or can't determine whether the policy selects the object. Ignore admits the object without this policy, Fail refuses it. Defaults to Fail where enforcement is Refuse, else to Ignore.",
    ),
  enforcement: z
    .enum(ENFORCEMENT)
    .nullish()
    .describe(
      "What happens when an object does not meet the policy's requirements after all changes. None admits it, Warn admits it with a warning, Refuse refuses it. Defaults to None.",
    ),
};

export const namespaced = z.strictObject(spec);
export const clusterWide = z.strictObject({
  ...spec,
  namespaceSelector: labelSelector
    .nullish()
    .describe("Selects namespaces by their labels. Absent selects nothing, empty selects everything."),
  fromNamespace: fromNamespaceSchema.nullish(),
});

export const CEL_RULES: readonly CelRule[] = [
  ...CRITERIA.flatMap(({ celRules }) => celRules ?? []),
  labelKeys("podSelector", "matchLabels"),
];
