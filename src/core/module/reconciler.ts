import type { Count } from "../decision/decision.ts";
import { type NeedMore, need } from "../decision/decision.ts";
import type { EventToWrite } from "../decision/finding.ts";
import { type Facts, failureOf, type Need } from "../decision/need.ts";
import type { PatchOperation } from "../decision/patch.ts";
import type { CountedTally } from "../decision/tally.ts";
import { canonical, isObject, type JsonObject, stringAt } from "../json.ts";
import type { PolicyRef } from "../policy/policy-ref.ts";
import type { Change, View } from "../view/view.ts";
import type { Assembly } from "./assembly.ts";
import type { Figure } from "./metric.ts";

/** Names one item of work. A module has a union of these, discriminated by `kind`. */
export type ReconcileKey = { readonly kind: string } & Readonly<Record<string, string>>;

/** The identity of a key in the workqueue: equal keys have equal identities, and no two others do. */
export function keyIdentity(key: ReconcileKey): string {
  return canonical(key);
}

/** For logs and dry runs: `node worker-1`. */
export function describeKey(key: ReconcileKey): string {
  return Object.values(key)
    .filter((part) => part !== "")
    .join(" ");
}

/** The inputs for finding keys. */
export interface KeysContext {
  readonly view: View;
  /** Evaluates a request now. Absent if nothing is evaluated. */
  readonly assembly?: Assembly;
}

/** All inputs of `reconcile`. */
export interface ReconcileContext<Key extends ReconcileKey = ReconcileKey> extends KeysContext {
  readonly facts: Facts;
  /** Milliseconds since 1970, from the shell. */
  readonly now: number;
  /** Milliseconds of a monotonic clock, any origin: for durations, which the wall clock may shorten. Absent if no time passes. */
  readonly elapsed?: number;
  /** Why the last writes of another key failed; absent if they did not. */
  readonly failure?: (key: Key) => string | undefined;
  /** Results of admissions, over all replicas. Absent if none are counted. */
  readonly tallies?: { readonly of: (module: string, policy: PolicyRef) => CountedTally | undefined };
}

/** Effects beyond admission: ordered writes, made by the leader's shell. A dry run prints them. */
export interface ReconcileResult<Key extends ReconcileKey = ReconcileKey> {
  readonly writes: readonly PlannedWrite[];
  /** Published after the writes. */
  readonly events?: readonly EventToWrite[];
  /** Increments of counters that the module declares, made after the writes. */
  readonly counts?: readonly Count[];
  /** Seconds until this key is reconciled again without a change. */
  readonly requeueAfter?: number;
  /** Further keys of the same reconciler, added after the writes. */
  readonly enqueue?: readonly Key[];
}

export type PlannedWrite =
  | {
      readonly apply: JsonObject;
      /** The version that the write rests on. `undefined`: the object did not exist; if it does by now, that is a conflict. */
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

/**
 * The pure part of a controller. Its only memory between calls is `State`: the shell creates it when it starts leading,
 * passes it to every call, and drops it when it stops. Calls are synchronous, so no two of them see one state at the
 * same time.
 */
export interface Reconciler<Key extends ReconcileKey = ReconcileKey, State = unknown> {
  readonly initialState: () => State;
  /** The keys that a change affects. */
  readonly keys: (change: Change, state: State, context: KeysContext) => readonly Key[];
  /** Every key to reconcile when leading starts. @default those of every object, as if it had just been created */
  readonly initialKeys?: (state: State, context: KeysContext) => Iterable<Key>;
  /** `normal`: those keys do not wait behind thousands of existing objects of other modules. @default low */
  readonly initialPriority?: "low" | "normal";
  /** The keys that changed tallies of a policy affect; the policy itself is unchanged. @default as if the policy had changed */
  readonly tallyKeys?: (policy: Change) => readonly Key[];
  /** Further keys to reconcile because writes of this one started or stopped failing. @default none */
  readonly failureKeys?: (key: Key, state: State, context: KeysContext) => readonly Key[];
  readonly reconcile: (
    key: Key,
    state: State,
    context: ReconcileContext<Key>,
  ) => ReconcileResult<Key> | NeedMore;
  /** Values of the gauges that the module declares. Empty if they are not known yet. */
  readonly figures?: (state: State, context: KeysContext) => readonly Figure[];
}

/** Names one object of a kind that modules read. */
type ObjectName = Extract<PlannedWrite, { readonly patch: unknown }>["of"];

/**
 * The stored object: the view keeps neither status nor resourceVersion, which change without affecting any admission.
 * `undefined` if it does not exist.
 */
export function liveObject(
  of: ObjectName,
  facts: Facts,
): { readonly object: JsonObject; readonly resourceVersion: string } | NeedMore | undefined {
  const live: Need = { get: of, live: true };
  const fact = facts.of(live);
  if (fact === undefined) return need(live);
  const failure = failureOf(fact);
  if (failure !== undefined) throw new Error(failure);
  if (!("found" in fact) || !isObject(fact.found)) return undefined;
  return { object: fact.found, resourceVersion: stringAt(fact.found, "metadata", "resourceVersion") ?? "" };
}

/**
 * Declares a reconciler. The controller handles reconcilers of all key and state types alike, so both types are erased
 * here, in one place; a reconciler only ever gets its own keys and its own state.
 */
export function defineReconciler<Key extends ReconcileKey, State>(
  reconciler: Reconciler<Key, State>,
): Reconciler {
  return reconciler as unknown as Reconciler;
}

/** The controller's workqueue and writes, for metrics. */
export interface ControllerStats {
  /** Work items by state; only the leader has any. */
  readonly items: Readonly<Record<"due" | "later" | "running", number>>;
  /** Items of each module whose last writes failed. */
  readonly failing: ReadonlyMap<string, number>;
  /** Writes since this replica started. */
  readonly writes: readonly WriteCount[];
  /** Values of the gauges that modules declare; only the leader has any. */
  readonly figures: readonly Figure[];
  /** Whether this replica leads. */
  readonly leading?: boolean;
  /** Events that this replica could not write. */
  readonly droppedEvents?: number;
  /** The number of an object's fields that differ from what usher would write, if it may not; only the leader reports any. */
  readonly drift?: ReadonlyMap<string, number>;
}

export interface WriteCount {
  readonly module: string;
  /** `nodes`; of an apply the kind. */
  readonly resource: string;
  /** A conflict is not a failure: the key is reconciled again immediately. */
  readonly result: "done" | "conflict" | "failed";
  readonly count: number;
}
