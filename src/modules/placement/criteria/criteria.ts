import type { JsonObject } from "../../../core/json.ts";

/** What a policy wants of a pod's spec. Where it wants nothing there is one shared empty list: ten thousand policies must stay small. */
export interface Criteria {
  readonly nodeSelector: readonly (readonly [key: string, value: string])[];
  readonly nodeName: string | undefined;
  readonly schedulerName: string | undefined;
  readonly priorityClassName: string | undefined;
  readonly runtimeClassName: string | undefined;
  readonly requiredNodeTerms: readonly JsonObject[];
  readonly preferredNodeTerms: readonly JsonObject[];
  readonly requiredPodTerms: readonly JsonObject[];
  readonly preferredPodTerms: readonly JsonObject[];
  readonly requiredAntiTerms: readonly JsonObject[];
  readonly preferredAntiTerms: readonly JsonObject[];
  readonly tolerations: readonly JsonObject[];
  readonly topologySpreadConstraints: readonly JsonObject[];
  readonly schedulingGates: readonly JsonObject[];
}

/** The fields of a pod's spec that are written, as far as the API server has a rule of its own for each. */
export type Field =
  | "nodeSelector"
  | "nodeName"
  | "schedulerName"
  | "tolerations"
  | "requiredNodeAffinity"
  | "preferredNodeAffinity"
  | "podAffinity"
  | "podAntiAffinity"
  | "topologySpreadConstraints"
  | "priorityClassName"
  | "runtimeClassName"
  | "schedulingGates";

/**
 * Why a field can't be written here, a part of a sentence; absent: it may. With `appendOnly` (a gated pod) requirements may be
 * appended to terms that are there, but no term may come or go.
 */
export type FieldLimits = Readonly<Partial<Record<Field, string>>> & { readonly appendOnly?: true };

/** The criteria that are a text each. */
export type NameField = "nodeName" | "schedulerName" | "priorityClassName" | "runtimeClassName";

const NONE: readonly JsonObject[] = [];

/** Wants nothing. What has some of it is spread over this, so that the rest is shared. */
export const NO_CRITERIA: Criteria = {
  nodeSelector: [],
  nodeName: undefined,
  schedulerName: undefined,
  priorityClassName: undefined,
  runtimeClassName: undefined,
  requiredNodeTerms: NONE,
  preferredNodeTerms: NONE,
  requiredPodTerms: NONE,
  preferredPodTerms: NONE,
  requiredAntiTerms: NONE,
  preferredAntiTerms: NONE,
  tolerations: NONE,
  topologySpreadConstraints: NONE,
  schedulingGates: NONE,
};
