import { at, type Json } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";

/** Where a pod's spec has its required node affinity. */
export const REQUIRED: Path = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

export const REQUIRED_TERMS: Path = [...REQUIRED, "nodeSelectorTerms"];

/** The required terms of a pod's spec. `undefined`: the pod requires no affinity, so that any node would do. */
export function termsOf(podSpec: Json | undefined): readonly Json[] | undefined {
  const required = at(podSpec, ...REQUIRED);
  if (required === undefined || required === null) return undefined;
  const terms = at(required, "nodeSelectorTerms");
  return Array.isArray(terms) ? terms : [];
}
