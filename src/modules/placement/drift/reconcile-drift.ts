import { type NeedMore, need } from "../../../core/decision/decision.ts";
import type { EventToWrite } from "../../../core/decision/finding.ts";
import { equal } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Module } from "../../../core/module/module.ts";
import type { ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import { policyKey, refOf } from "../../../core/policy/policy-ref.ts";
import type { PlacementKey } from "../reconciler.ts";
import type { PlacementState } from "../reconciler-state.ts";
import { repairsDrift } from "../settings.ts";
import { DriftWalk } from "./drift-walk.ts";

type Result = ReconcileResult<PlacementKey>;
type Context = ReconcileContext<PlacementKey>;

/** Policies often change together: a scan waits until none has changed for this long. */
const DEBOUNCE_MS = 5_000;

/** Between the starts of two scans, with any changes: a scan reads every workload of the cluster. */
const GAP_MS = 30_000;

/** Without a change of any policy: workloads change, and so do the labels of namespaces. */
const EVERY_MS = 600_000;

/** Between two pages, to leave the processor to admission. */
const BETWEEN_PAGES_S = 0.1;

/** After a page that could not be read. */
const AFTER_FAILURE_S = 5;

/** One page of the leader's drift scan; the counts of a complete scan go to the status of policies, to events and to a metric. */
export function reconcileDriftScan(
  module: Module,
  state: PlacementState,
  context: Context,
): Result | NeedMore {
  const { assembly, now, elapsed = now, facts } = context;
  if (assembly === undefined) return { writes: [] };
  if (state.walk === undefined) {
    const wait = untilNext(state, elapsed);
    if (wait > 0) return { writes: [], requeueAfter: wait / 1_000 };
    state.walk = new DriftWalk(module, assembly);
    state.scanned = state.changes;
    state.startedAt = elapsed;
  }
  const { walk } = state;
  let requeueAfter = BETWEEN_PAGES_S;
  if (!walk.waits) {
    const { page } = walk;
    if (page === undefined) return finish(module, state, walk, context);
    const fact = facts.of(page);
    if (fact === undefined) return need(page);
    walk.take(fact);
    if (!("found" in fact)) requeueAfter = AFTER_FAILURE_S;
  }
  const scanned = walk.judge(facts, now);
  if ("needs" in scanned) return need(...scanned.needs);
  const repair = repairsDrift(assembly.installation) && state.repair.add(scanned);
  return { writes: [], requeueAfter, ...(repair ? { enqueue: [{ kind: "drift-repair" }] } : {}) };
}

/** Milliseconds until a scan is due; zero or less: now. By the monotonic clock: the wall clock may jump by hours. */
function untilNext(state: PlacementState, elapsed: number): number {
  if (state.debounced !== state.changes) {
    state.debounced = state.changes;
    state.debouncedUntil = elapsed + DEBOUNCE_MS;
  }
  const due =
    state.changes === state.scanned
      ? state.endedAt + EVERY_MS
      : Math.max(state.debouncedUntil, state.startedAt + GAP_MS);
  return due - elapsed;
}

function finish(
  module: Module,
  state: PlacementState,
  walk: DriftWalk,
  { view, now, elapsed = now }: Context,
): Result {
  const before = state.counts;
  const { counts } = walk;
  state.counts = counts;
  state.walk = undefined;
  state.endedAt = elapsed;
  const enqueue: PlacementKey[] = [];
  const events: EventToWrite[] = [];
  for (const kind of module.kinds) {
    const resource = kindResource(kind);
    for (const object of view.list(resource)) {
      const ref = refOf(kind, object);
      const policy = policyKey(ref);
      if (before !== undefined && equal(before.of(policy), counts.of(policy))) continue;
      enqueue.push({ kind: "status", resource, namespace: ref.namespace ?? "", name: nameOf(object) });
      const event = counts.event(policy, ref, before);
      if (event !== undefined) events.push(event);
    }
  }
  return { writes: [], enqueue, events, requeueAfter: Math.max(1, untilNext(state, elapsed) / 1_000) };
}
