import type { JsonObject } from "../../src/core/json.ts";
import { CRITERIA } from "../../src/modules/placement/criteria/criteria.ts";
import { type Criteria, CriterionValue } from "../../src/modules/placement/criteria/criterion.ts";

/** Criteria in the form that tests write, by name. */
export interface Fields {
  readonly nodeSelector?: readonly (readonly [key: string, value: string])[];
  readonly nodeName?: string | undefined;
  readonly schedulerName?: string | undefined;
  readonly priorityClassName?: string | undefined;
  readonly runtimeClassName?: string | undefined;
  readonly requiredNodeAffinity?: readonly JsonObject[];
  readonly preferredNodeAffinity?: readonly JsonObject[];
  readonly requiredPodAffinity?: readonly JsonObject[];
  readonly preferredPodAffinity?: readonly JsonObject[];
  readonly requiredPodAntiAffinity?: readonly JsonObject[];
  readonly preferredPodAntiAffinity?: readonly JsonObject[];
  readonly tolerations?: readonly JsonObject[];
  readonly topologySpreadConstraints?: readonly JsonObject[];
  readonly schedulingGates?: readonly JsonObject[];
}

/** The same in the form of a policy: in order of application, without empty ones. */
export function wants(fields: Fields): Criteria {
  return CRITERIA.flatMap((criterion) => {
    const value = fields[criterion.name as keyof Fields];
    return value === undefined || value.length === 0 ? [] : [new CriterionValue(criterion, value)];
  });
}

/** Back by name. */
export function fieldsOf(criteria: Criteria): Fields {
  return Object.fromEntries(criteria.map(({ criterion, value }) => [criterion.name, value]));
}
