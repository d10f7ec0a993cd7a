import type { NeedMore } from "../../../core/decision/decision.ts";
import { equal, isObject } from "../../../core/json.ts";
import { liveObject, type ReconcileContext, type ReconcileResult } from "../../../core/module/reconciler.ts";
import { checkObject } from "../../../core/policy/check.ts";
import type { Kind } from "../../../core/policy/kind.ts";
import { policyKey, refOf } from "../../../core/policy/policy-ref.ts";
import { selectedNodes } from "../criteria/selected-nodes.ts";
import type { StatusKey } from "../reconciler.ts";
import type { PlacementState } from "../reconciler-state.ts";
import { effectOf } from "./effect.ts";
import { statusOf } from "./status.ts";

const NOTHING: ReconcileResult<never> = { writes: [] };

/** Keeps the status of a policy current: its problems, its tallies over all replicas, and the drift of stored workloads. */
export function reconcileStatus(
  key: StatusKey,
  kind: Kind,
  { counts: drift, nodes }: Pick<PlacementState, "counts" | "nodes">,
  { facts, view, now, tallies, assembly }: Omit<ReconcileContext, "failure">,
): ReconcileResult<never> | NeedMore {
  const { resource, namespace, name } = key;
  const of = { resource, ...(namespace === "" ? {} : { namespace }), name };
  const live = liveObject(of, facts);
  if (live === undefined) return NOTHING;
  if ("need" in live) return live;
  const { object, resourceVersion } = live;
  const ref = refOf(kind, object);
  const before = isObject(object["status"]) ? object["status"] : {};
  const problems = checkObject(kind, object, view, assembly);
  const selected = selectedNodes(isObject(object["spec"]) ? object["spec"] : {}, view);
  nodes.record(key, selected?.selected);
  const effect = effectOf(kind, object, {
    problems,
    nodes: selected,
    view,
    installation: assembly?.installation,
  });
  const policy = { generation: ref.generation, problems, effect, nodes: selected?.selected };
  const status = statusOf(policy, tallies?.of("placement", ref), before, now, drift?.of(policyKey(ref)));
  if (equal(status, before)) return NOTHING;
  return { writes: [{ status, of, resourceVersion }] };
}
