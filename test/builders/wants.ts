import type { JsonObject } from "../../src/core/json.ts";
import { CRITERIA } from "../../src/modules/placement/criteria/criteria.ts";
import type { Criteria } from "../../src/modules/placement/criteria/criterion.ts";

/** Criteria as a test writes them, by name. */
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

/** The same as a policy has them: in the order of application, without those that want nothing. */
export function wants(fields: Fields): Criteria {
  return CRITERIA.flatMap((criterion) => {
    const value = fields[criterion.name as keyof Fields];
    return value === undefined || value.length === 0 ? [] : [{ criterion, value }];
  });
}

/** By name again. */
export function fieldsOf(criteria: Criteria): Fields {
  return Object.fromEntries(criteria.map(({ criterion, value }) => [criterion.name, value]));
}
