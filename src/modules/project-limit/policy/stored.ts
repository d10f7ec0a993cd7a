import { refOf } from "../../../core/evaluate/assembly.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import type { View } from "../../../core/view/view.ts";
import { projectRequestLimit } from "../kinds.ts";
import { type ProjectLimits, SINGLETON } from "./policy.ts";

export const LIMITS = kindResource(projectRequestLimit);

/** The limits that count now. */
export function limitsIn(view: View): ProjectLimits | undefined {
  const object = view.get(LIMITS, "", SINGLETON);
  return object === undefined
    ? undefined
    : projectRequestLimit.prepare(object, refOf(projectRequestLimit, object)).policy;
}
