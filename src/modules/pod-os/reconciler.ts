import type { NeedMore } from "../../core/decision/decision.ts";
import { equal, isObject, type JsonObject, listAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import {
  type KeysContext,
  liveObject,
  type ReconcileContext,
  type ReconcileResult,
  type Reconciler,
} from "../../core/module/reconciler.ts";
import { checkObject } from "../../core/policy/check.ts";
import { ignoredBecause, kindResource } from "../../core/policy/kind.ts";
import { podSecurityException } from "./kinds.ts";
import { type NodeKey, type NodeState, nodeReconciler } from "./nodes/reconciler.ts";
import { statusOfException } from "./security/exceptions/status.ts";

/** A node, or the status of a PodSecurityException. */
type PodOSKey = NodeKey | ExceptionKey;
type ExceptionKey = { readonly kind: "exception"; readonly name: string };

const EXCEPTIONS = kindResource(podSecurityException);

/** An exception ends by itself; there are no timers of a year, so it is checked every day. */
const LONGEST_WAIT_S = 86_400;

/** Nodes, and the status of exceptions if they count. */
export const podOSReconciler: Reconciler<PodOSKey, NodeState> = {
  initialState: nodeReconciler.initialState,
  figures: (state, context) => nodeReconciler.figures?.(state, context) ?? [],
  keys: (change, state, context) => {
    const { resource, name, object, before } = change;
    if (resource === EXCEPTIONS)
      return object === undefined || !areInForce(context) ? [] : [{ kind: "exception", name }];
    if (resource === "namespaces")
      return (object === undefined) === (before === undefined) ? [] : [...exceptionsFor(name, context)];
    return nodeReconciler.keys(change, state, context);
  },
  reconcile: (key, state, context) =>
    key.kind === "exception"
      ? reconcileException(key.name, context)
      : nodeReconciler.reconcile(key, state, context),
};

function areInForce({ assembly }: KeysContext): boolean {
  return assembly !== undefined && ignoredBecause(podSecurityException, assembly) === undefined;
}

/** Exceptions that name a created or deleted namespace. */
function* exceptionsFor(namespace: string, context: KeysContext): Iterable<ExceptionKey> {
  if (!areInForce(context)) return;
  for (const object of context.view.list(EXCEPTIONS))
    if (listAt(object, "spec", "namespaces").includes(namespace))
      yield { kind: "exception", name: nameOf(object) };
}

function reconcileException(
  name: string,
  { facts, view, now, assembly }: Pick<ReconcileContext, "facts" | "view" | "now" | "assembly">,
): ReconcileResult<never> | NeedMore {
  const of = { resource: EXCEPTIONS, name };
  const live = liveObject(of, facts);
  if (live === undefined) return { writes: [] };
  if ("need" in live) return live;
  const { object, resourceVersion } = live;
  const before: JsonObject = isObject(object["status"]) ? object["status"] : {};
  const problems = checkObject(podSecurityException, object, view, assembly);
  const { status, changesAt } = statusOfException(object, problems, view, before, now);
  const wait = changesAt === undefined ? LONGEST_WAIT_S : Math.ceil((changesAt - now) / 1_000);
  return {
    writes: equal(status, before) ? [] : [{ status, of, resourceVersion }],
    ...(changesAt === undefined ? {} : { requeueAfter: Math.max(1, Math.min(wait, LONGEST_WAIT_S)) }),
  };
}
