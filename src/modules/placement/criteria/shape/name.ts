import type { Finding } from "../../../../core/evaluate/finding.ts";
import { policyName } from "../../../../core/evaluate/finding.ts";
import { at, type Json, listAt } from "../../../../core/json.ts";
import type { PlacementRequest, Target } from "../../merge/merge.ts";
import {
  applied,
  closed,
  conflict,
  holderOf,
  leftOut,
  type Place,
  same,
  unwritable,
} from "../../merge/report.ts";
import { storedValue } from "../../merge/stored-value.ts";
import type { NameField } from "../criteria.ts";
import { DEFAULT_SCHEDULER, meansDefaultScheduler } from "../scheduler-name.ts";

/** Fields that hold one name: set where the pod's is empty; else what was said first stays. */
export function mergeName(
  target: Target,
  wish: PlacementRequest,
  field: NameField,
  value: string,
  findings: Finding[],
): void {
  const { draft, spec, holders } = target;
  const path = [...spec, field];
  const place: Place = { rule: field, path };
  const present = draft.get(...path);
  const text = `${field} ${value}`;
  if (present === value) {
    same(wish, place, text, findings);
    // Else the next policy would take the default, which this one means, for nobody's.
    if (value === DEFAULT_SCHEDULER && !holders.has(field)) holders.set(field, wish.ref);
    return;
  }
  if (!isUnset(target, field, present)) {
    const sides = `${holderOf(target, field)} says ${String(present)}, policy ${policyName(wish.ref)} says ${value}`;
    conflict(wish, place, "USHER-P10", `${field}: ${sides}`, findings);
    return;
  }
  if (closed(target, wish, field, place, findings)) return;
  if (field === "nodeName" && listAt(at(draft.object, ...spec), "schedulingGates").length > 0) {
    const why = "a pod that waits at a scheduling gate can't have its node yet";
    leftOut(
      wish,
      place,
      "USHER-P15",
      `${text} of policy ${policyName(wish.ref)} is left out: ${why}`,
      findings,
    );
    return;
  }
  const finding = applied(wish, place, text, storedValue(draft, path) === value);
  if (!draft.set(path, value, finding)) {
    unwritable(wish, place, `${field} can't be written here`, findings);
    return;
  }
  holders.set(field, wish.ref);
  // Both follow from the class that the pod had before: the API server refuses a pod whose numbers are not those of its class.
  if (field === "priorityClassName" && target.pod && !wish.restoring) {
    draft.remove([...spec, "priority"], undefined);
    draft.remove([...spec, "preemptionPolicy"], undefined);
  }
}

function isUnset({ draft, spec, holders }: Target, field: NameField, present: Json | undefined): boolean {
  if (present === undefined || present === null || present === "") return true;
  if (field !== "schedulerName" || present !== DEFAULT_SCHEDULER || holders.has(field)) return false;
  return !meansDefaultScheduler(draft.object, spec);
}
