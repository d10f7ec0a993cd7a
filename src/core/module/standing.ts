import type { Json } from "../json.ts";
import type { Path } from "../path.ts";

/** One value that a module sets on an object outside of admission. */
export interface StandingValue {
  /** `["metadata", "labels", "pool"]`; of a taint `["spec", "taints", "dedicated:NoSchedule"]`. */
  readonly path: Path;
  /** As people read it: `label pool=edge` */
  readonly message: string;
  /** The policy, as `namespace/name`; absent where it is the module's own. */
  readonly by?: string;
}

/** A value that differs from what the policies want. */
export interface StandingChange extends StandingValue {
  readonly change: "add" | "change" | "remove";
  /** Absent where the value is removed. */
  readonly to?: Json;
}

/**
 * What the policies of a module come to for one object, or one user, that exists: no request is needed to know it. Every change is
 * included, also one that waits for a grace period.
 */
export interface Standing {
  readonly object: { readonly kind: string; readonly namespace?: string; readonly name: string };
  /** What the module's controller would still change. */
  readonly changes: readonly StandingChange[];
  /** What the module has set, and the object has. */
  readonly holds: readonly StandingValue[];
  /** Why it does not comply: `5 projects, at most 3 (limits[0])` */
  readonly violation?: string;
}
