import type { NeedMore } from "./decision.ts";
import type { CountedTally } from "./effects.ts";
import type { PolicyRef } from "./finding.ts";
import type { JsonObject } from "./json.ts";
import type { Facts } from "./need.ts";
import type { PatchOperation } from "./patch.ts";
import type { Change, View } from "./view.ts";

/** What must hold beyond admission: ordered writes, made by the leader's shell. A dry run prints them. */
export interface Plan {
  readonly writes: readonly PlannedWrite[];
  /** Seconds until this key should be looked at again. */
  readonly again?: number;
}

export type PlannedWrite =
  | { readonly apply: JsonObject }
  | {
      readonly patch: readonly PatchOperation[];
      readonly of: { readonly resource: string; readonly namespace?: string; readonly name: string };
      readonly resourceVersion: string;
    }
  | {
      readonly delete: { readonly resource: string; readonly namespace?: string; readonly name: string };
      readonly resourceVersion: string;
    }
  | {
      readonly status: JsonObject;
      readonly of: { readonly resource: string; readonly namespace?: string; readonly name: string };
      readonly resourceVersion: string;
    };

/** All that a plan may look at. */
export interface PlanContext {
  readonly view: View;
  readonly facts: Facts;
  /** Milliseconds since 1970, given by the shell. */
  readonly now: number;
  /** What admissions came to, over all replicas. Absent where nobody counts. */
  readonly tallies?: { readonly of: (module: string, policy: PolicyRef) => CountedTally | undefined };
}

export interface Planner {
  /** Which work items a change touches. */
  readonly keys: (change: Change, view: View) => readonly string[];
  readonly plan: (key: string, context: PlanContext) => Plan | NeedMore;
}
