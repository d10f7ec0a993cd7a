import { at, type Json } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";

export const REQUIRED_TERMS: Path = [
  "affinity",
  "nodeAffinity",
  "requiredDuringSchedulingIgnoredDuringExecution",
  "nodeSelectorTerms",
];

/** The required terms of a pod's spec. `undefined`: the pod requires no affinity, so that any node would do. */
export function termsOf(podSpec: Json | undefined): readonly Json[] | undefined {
  const required = at(podSpec, ...REQUIRED_TERMS.slice(0, -1));
  if (required === undefined || required === null) return undefined;
  const terms = at(required, "nodeSelectorTerms");
  return Array.isArray(terms) ? terms : [];
}
