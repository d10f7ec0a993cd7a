import type { Assembly } from "../evaluate/assembly.ts";
import type { NeedMore } from "../evaluate/decision.ts";
import type { CountedTally, EventToWrite } from "../evaluate/effects.ts";
import type { PolicyRef } from "../evaluate/finding.ts";
import type { Facts } from "../evaluate/need.ts";
import type { PatchOperation } from "../evaluate/patch.ts";
import type { JsonObject } from "../json.ts";
import type { Change, View } from "../view/view.ts";

/** What must hold beyond admission: ordered writes, made by the leader's shell. A dry run prints them. */
export interface ReconcileResult {
  readonly writes: readonly PlannedWrite[];
  /** Seconds until this key should be looked at again. */
  readonly again?: number;
  /** Further keys of the same reconciler that are due by this, once the writes are made. */
  readonly also?: readonly string[];
  /** What people should hear of it, once the writes are made. */
  readonly events?: readonly EventToWrite[];
}

export type PlannedWrite =
  | {
      readonly apply: JsonObject;
      /** What the plan rests on. `undefined`: it was not there, and where it is by now the plan must be made anew. */
      readonly resourceVersion: string | undefined;
    }
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
export interface ReconcileContext {
  readonly view: View;
  readonly facts: Facts;
  /** Milliseconds since 1970, given by the shell. */
  readonly now: number;
  /** What would be decided now: a plan may ask the heart. Absent where nobody decides. */
  readonly assembly?: Assembly;
  /** Why the last writes of another key failed; absent where they did not. */
  readonly failure?: (key: string) => string | undefined;
  /** What admissions came to, over all replicas. Absent where nobody counts. */
  readonly tallies?: { readonly of: (module: string, policy: PolicyRef) => CountedTally | undefined };
}

/** What becomes of plans, for metrics. */
export interface ControllerFigures {
  /** Work items by state, of the leader; a replica that follows has none. */
  readonly items: Readonly<Record<"due" | "later" | "running", number>>;
  /** Items of each module whose last writes failed. */
  readonly failing: ReadonlyMap<string, number>;
  /** Writes since this replica began. */
  readonly writes: readonly PlannedWrites[];
}

export interface PlannedWrites {
  readonly module: string;
  /** `nodes`; of what is applied the kind. */
  readonly resource: string;
  /** A conflict is no failure: it is planned anew at once. */
  readonly result: "done" | "conflict" | "failed";
  readonly count: number;
}

export interface Reconciler {
  /** Which work items a change touches. */
  readonly keys: (change: Change, view: View, assembly?: Assembly) => readonly string[];
  /** Which work items the counts of a policy touch: what it says is as it was. @default as if it had changed */
  readonly counted?: (policy: Change) => readonly string[];
  /** Every work item that is worth a look when someone begins to lead. @default those of every object, as if it had just come */
  readonly all?: (view: View, assembly?: Assembly) => Iterable<string>;
  /** Which further items to look at because the writes of one began to fail, or no longer do. @default none */
  readonly settled?: (key: string, view: View, assembly?: Assembly) => readonly string[];
  readonly plan: (key: string, context: ReconcileContext) => ReconcileResult | NeedMore;
  /** How workloads stand to the policies, by state, for a metric. Empty where this replica does not know. */
  readonly figures?: (view: View) => Readonly<Record<string, number>>;
}
