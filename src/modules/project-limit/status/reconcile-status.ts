import type { NeedMore } from "../../../core/decision/decision.ts";
import { at, equal, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import type { IgnoredObject } from "../../../core/module/operator.ts";
import { liveObject, type ReconcileContext, type ReconcileResult } from "../../../core/module/reconciler.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { refOf } from "../../../core/policy/policy-ref.ts";
import { LIMITS, projectRequestLimit } from "../kinds.ts";
import { IGNORED, ignoredStatus, limitsStatus } from "./status.ts";

/** Counts in the status follow the namespaces with this delay: they are created all day, and all watchers see each write. */
const REFRESH_SECONDS = 30;

/** Keeps the status of a ProjectRequestLimit current; an object that does not count gets a condition, and an event once. */
export function reconcileStatus(
  name: string,
  { facts, view, now }: Pick<ReconcileContext, "facts" | "view" | "now">,
): ReconcileResult<never> | NeedMore {
  const of = { resource: LIMITS, name };
  const live = liveObject(of, facts);
  if (live === undefined) return { writes: [] };
  if ("need" in live) return live;
  const { object, resourceVersion } = live;
  const before = isObject(object["status"]) ? object["status"] : {};
  const ref = refOf(projectRequestLimit, object);
  const limits = projectRequestLimit.prepare(object, ref).policy;
  if (limits === undefined) {
    const ignored = ignoredObject(object, now);
    if (ignored === undefined) return { writes: [] };
    return { writes: [{ status: ignored.status, of, resourceVersion }], events: ignored.events };
  }
  const problems = checkObject(projectRequestLimit, object, view);
  const status = limitsStatus(limits, problems, view, before, now);
  const writes = equal(status, before) ? [] : [{ status, of, resourceVersion }];
  return { writes, requeueAfter: REFRESH_SECONDS };
}

/** The condition of an object of another name; `undefined` if it has it. */
export function ignoredObject(object: JsonObject, now: number): IgnoredObject | undefined {
  const before = isObject(object["status"]) ? object["status"] : {};
  const status = ignoredStatus(refOf(projectRequestLimit, object).generation, before, now);
  if (equal(status, before)) return undefined;
  return { status, events: wasIgnored(before) ? [] : [ignoredEvent(object)] };
}

function wasIgnored(before: JsonObject): boolean {
  return listAt(before, "conditions").some(
    (one) => at(one, "type") === IGNORED.type && at(one, "status") === "True",
  );
}

function ignoredEvent(object: JsonObject) {
  const { apiVersion = "", kind = "" } = {
    apiVersion: stringAt(object, "apiVersion"),
    kind: stringAt(object, "kind"),
  };
  const uid = stringAt(object, "metadata", "uid");
  return {
    type: "Warning" as const,
    reason: "Ignored",
    message: IGNORED.message,
    policy: undefined,
    regarding: {
      apiVersion,
      kind,
      name: stringAt(object, "metadata", "name") ?? "",
      ...(uid === undefined ? {} : { uid }),
    },
  };
}
