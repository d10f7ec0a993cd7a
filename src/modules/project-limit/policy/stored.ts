import { refOf } from "../../../core/evaluate/assembly.ts";
import { type Kind, kindResource } from "../../../core/policy/kind.ts";
import type { View } from "../../../core/view/view.ts";
import { projectRequestLimit } from "../kinds.ts";
import { type ProjectLimits, SINGLETON } from "./policy.ts";

export const LIMITS = kindResource(projectRequestLimit);

/** The limits that count now. */
export function limitsIn(
  view: View,
  kind: Kind<ProjectLimits> = projectRequestLimit,
  name = SINGLETON,
): ProjectLimits | undefined {
  const object = view.get(kindResource(kind), "", name);
  return object === undefined ? undefined : kind.prepare(object, refOf(kind, object)).policy;
}
