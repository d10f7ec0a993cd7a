import type { NeedMore } from "./decision.ts";
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

export interface Planner {
  /** Which work items a change touches. */
  readonly keys: (change: Change, view: View) => readonly string[];
  readonly plan: (
    key: string,
    context: { readonly view: View; readonly facts: Facts; readonly now: number },
  ) => Plan | NeedMore;
}
