import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import type { Override } from "../groups/group.ts";
import type { GroupSource } from "./prepare.ts";

export const CONSISTENCIES = ["Corrected", "Literal", "Disabled"] as const;
export type Consistency = (typeof CONSISTENCIES)[number];

/** What each kind of object becomes. */
export type GuardPolicy =
  /** A NodeSchedulingPolicyConfig. */
  | { readonly kind: "config"; readonly groups: readonly GroupSource[] }
  /** A NodeSchedulingPolicy; only the one named cluster counts. */
  | {
      readonly kind: "policy";
      readonly name: string;
      readonly ref: PolicyRef;
      readonly consistency: Consistency;
      readonly groups: readonly GroupSource[];
    }
  /** A Scheduler; only the one named cluster counts. */
  | {
      readonly kind: "scheduler";
      readonly name: string;
      readonly mastersSchedulable: boolean;
      readonly groups: readonly GroupSource[];
    }
  | { readonly kind: "override"; readonly override: Override };

/** The singletons that count have this name. */
export const CLUSTER = "cluster";
