import type { Json } from "../json.ts";
import type { Path } from "../path.ts";

/** One value that a module sets on an object outside of admission. */
export interface StandingValue {
  /** `["metadata", "labels", "pool"]`; of a taint `["spec", "taints", "dedicated:NoSchedule"]`. */
  readonly path: Path;
  /** In readable form: `label pool=edge` */
  readonly message: string;
  /** The policy, as `namespace/name`; absent if it is the module's own. */
  readonly by?: string;
}

/** A value that differs from the policies' value. */
export interface StandingChange extends StandingValue {
  readonly change: "add" | "change" | "remove";
  /** Absent if the value is removed. */
  readonly to?: Json;
}

/**
 * The effect of a module's policies on one existing object or user, without a request. Every change is included, also
 * one that waits for a grace period.
 */
export interface Standing {
  readonly object: { readonly kind: string; readonly namespace?: string; readonly name: string };
  /** Changes that the module's controller has yet to make. */
  readonly changes: readonly StandingChange[];
  /** Values that the module has set, and the object has. */
  readonly holds: readonly StandingValue[];
  /** Why it does not comply: `5 projects, at most 3 (limits[0])` */
  readonly violation?: string;
}
