import { refOf } from "../../../core/evaluate/assembly.ts";
import { need } from "../../../core/evaluate/decision.ts";
import type { EventToWrite } from "../../../core/evaluate/effects.ts";
import { policyKey } from "../../../core/evaluate/finding.ts";
import { equal, type JsonObject, stringAt } from "../../../core/json.ts";
import type { Module } from "../../../core/module/module.ts";
import type { ReconcileContext, ReconcileResult, Reconciler } from "../../../core/module/reconciler.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import type { Change, View } from "../../../core/view/view.ts";
import type { DriftCounts } from "./drift-counts.ts";
import { DriftRepair, repairsDrift } from "./drift-repair.ts";
import { DriftWalk } from "./drift-walk.ts";

/** Whoever changes one policy often changes another with it. */
const QUIET_MS = 5_000;

/** Whatever changes, a walk begins no sooner than this after the last: it reads every workload of the cluster. */
const GAP_MS = 30_000;

/** Without a change of any policy: workloads change, and so do the labels of namespaces. */
const EVERY_MS = 600_000;

/** Between two pages, so that the walk leaves the processor to those who wait for an answer. */
const BETWEEN_PAGES_S = 0.1;

/** After a page that could not be read. */
const AFTER_FAILURE_S = 5;

const SURVEY = "survey";
const MEND = "mend";

export function isDriftKey(key: string): boolean {
  return key === SURVEY || key === MEND;
}

/** What is known of one cluster. */
interface State {
  readonly mending: DriftRepair;
  /** Policies as they have been seen; what is told again without having changed is no change. */
  readonly seen: WeakSet<JsonObject>;
  changes: number;
  /** How many changes there were when it was last looked, and when the last walk began. */
  noticed: number;
  walked: number;
  quietUntil: number;
  began: number;
  ended: number;
  walk: DriftWalk | undefined;
  book: DriftCounts | undefined;
}

/** The leader's walk through the workloads: how they stand to the policies, for their status, for events and for a metric. */
export interface DriftReconciler extends Reconciler {
  readonly figures: NonNullable<Reconciler["figures"]>;
  /** What the last walk found of a policy; absent before the first. */
  readonly workloads: (view: View, policy: string) => JsonObject | undefined;
}

/** `module` is asked when it is needed: a module has its reconciler before it is whole. */
export function driftReconciler(module: () => Module): DriftReconciler {
  const states = new WeakMap<View, State>();
  const stateOf = (view: View): State => {
    const known = states.get(view) ?? newState();
    states.set(view, known);
    return known;
  };
  return {
    // Whatever changes: a look costs nothing, and whoever begins to lead must begin with one.
    keys: (change, view) => {
      notice(change, module(), stateOf(view));
      return [SURVEY];
    },
    plan: (key, context) => {
      const state = stateOf(context.view);
      if (key === SURVEY) return survey(module(), state, context);
      if (key === MEND) return state.mending.plan(module(), context);
      return { writes: [] };
    },
    figures: (view) => ({ ...states.get(view)?.book?.sums() }),
    workloads: (view, policy) => states.get(view)?.book?.of(policy),
  };
}

function newState(): State {
  const never = Number.NEGATIVE_INFINITY;
  return {
    mending: new DriftRepair(),
    seen: new WeakSet(),
    changes: 0,
    noticed: 0,
    walked: 0,
    quietUntil: never,
    began: never,
    ended: never,
    walk: undefined,
    book: undefined,
  };
}

/** Only policies make a walk due: namespaces come and go all day. */
function notice({ resource, object }: Change, { kinds }: Module, state: State): void {
  if (!kinds.some((kind) => kindResource(kind) === resource)) return;
  if (object !== undefined) {
    if (state.seen.has(object)) return;
    state.seen.add(object);
  }
  state.changes++;
}

function survey(
  module: Module,
  state: State,
  context: ReconcileContext,
): ReconcileResult | ReturnType<typeof need> {
  const { assembly, now, facts } = context;
  if (assembly === undefined) return { writes: [] };
  if (state.walk === undefined) {
    const wait = untilNext(state, now);
    if (wait > 0) return { writes: [], again: wait / 1_000 };
    state.walk = new DriftWalk(module, assembly);
    state.walked = state.changes;
    state.began = now;
  }
  const { walk } = state;
  let again = BETWEEN_PAGES_S;
  if (!walk.waits) {
    const { page } = walk;
    if (page === undefined) return finish(module, state, walk, context);
    const fact = facts.of(page);
    if (fact === undefined) return need(page);
    walk.take(fact);
    if (!("found" in fact)) again = AFTER_FAILURE_S;
  }
  const met = walk.judge(facts, now);
  if ("needs" in met) return need(...met.needs);
  const waiting = repairsDrift(assembly.installation) && state.mending.take(met);
  return { writes: [], again, ...(waiting ? { also: [MEND] } : {}) };
}

/** Milliseconds until a walk should begin; none or less: now. */
function untilNext(state: State, now: number): number {
  if (state.noticed !== state.changes) {
    state.noticed = state.changes;
    state.quietUntil = now + QUIET_MS;
  }
  const due =
    state.changes === state.walked
      ? state.ended + EVERY_MS
      : Math.max(state.quietUntil, state.began + GAP_MS);
  return due - now;
}

function finish(
  module: Module,
  state: State,
  walk: DriftWalk,
  { view, now }: ReconcileContext,
): ReconcileResult {
  const before = state.book;
  state.book = walk.book;
  state.walk = undefined;
  state.ended = now;
  const also: string[] = [];
  const events: EventToWrite[] = [];
  for (const kind of module.kinds) {
    const resource = kindResource(kind);
    for (const object of view.list(resource)) {
      const ref = refOf(kind, object);
      const key = policyKey(ref);
      if (before !== undefined && equal(before.of(key), walk.book.of(key))) continue;
      also.push(`${resource} ${ref.namespace ?? ""}/${stringAt(object, "metadata", "name") ?? ""}`);
      const event = walk.book.event(key, ref, before);
      if (event !== undefined) events.push(event);
    }
  }
  return { writes: [], also, events, again: Math.max(1, untilNext(state, now) / 1_000) };
}
