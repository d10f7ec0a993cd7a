import type { Draft } from "../../../../core/evaluate/draft.ts";
import type { Finding } from "../../../../core/evaluate/finding.ts";
import { policyName } from "../../../../core/evaluate/finding.ts";
import { at, canonical, type Json, type JsonObject, listAt } from "../../../../core/json.ts";
import type { Path } from "../../../../core/path.ts";
import { shallow } from "../../../../core/provenance/origin.ts";
import type { PlacementRequest, Target } from "../../merge/merge.ts";
import {
  applied,
  closed,
  conflict,
  failed,
  holderOf,
  leftOut,
  type Place,
  reportTooMuchWork,
  same,
  unwritable,
} from "../../merge/report.ts";
import { storedOrder, storedValue } from "../../merge/stored-value.ts";
import { STEPS_TO_TELL, valuesIn } from "../../merge/work-budget.ts";
import type { ListPlace } from "../places.ts";
import type { KnownList } from "./known-list.ts";

/**
 * So many elements a list may come to, and in so many usher looks for what a policy wants: between the two an object that just came to
 * the first has room for what the API server adds itself. No workload comes near; but an object may hold a hundred thousand, and each
 * element of each policy would be looked for in them.
 */
const MOST_ELEMENTS = 512;
const MOST_LOOKED_AT = 1_024;

/**
 * Lists to which each element adds something by itself (preferences, pod affinity, tolerations, spread constraints, gates): one that the
 * pod has in this meaning is not added again, and where a pod can have only one of a kind, its own stays.
 */
export function mergeList(
  target: Target,
  wish: PlacementRequest,
  list: ListPlace,
  wanted: readonly JsonObject[],
  findings: Finding[],
): void {
  const { draft, spec, holders } = target;
  const path = [...spec, ...list.path];
  const place: Place = { rule: list.path.join("."), path };
  const before = draft.get(...path) ?? [];
  if (!Array.isArray(before)) {
    unwritable(wish, place, `${place.rule} is no list here`, findings);
    return;
  }
  if (before.length > MOST_LOOKED_AT) {
    tellTooLong(wish, place, list.what, findings);
    return;
  }
  const known = target.lists.of(list, before, target.effort);
  const order = target.lists.ranks(list, () => storedRanks(draft, path));
  const taken = target.lists.taken(list, () => storedValue(draft, path));
  for (const element of wanted) {
    if (!target.effort.spend(STEPS_TO_TELL + 3 * heavinessOf(element))) {
      reportTooMuchWork(wish, place, list.what, findings);
      return;
    }
    const text = `${list.what} ${list.describe(element)}`;
    if (known.has(element)) {
      same(wish, place, text, findings, element);
      continue;
    }
    const key = list.key?.(element);
    const other = known.other(key);
    if (other !== undefined) {
      const holder = holderOf(target, `${list.field}/${key}`);
      const said = `${list.what}: ${holder} says ${list.describe(other)}, policy ${policyName(wish.ref)} says ${list.describe(element)}`;
      const differently = list.describe(other) === list.describe(element) ? `${said} in other words` : said;
      conflict(wish, place, "USHER-P14", differently, findings);
      continue;
    }
    if (closed(target, wish, list.field, place, findings)) return;
    if (list.field === "schedulingGates" && hasNode(draft.get(...spec, "nodeName"))) {
      const why = `a pod with a node of its own, which ${holderOf(target, "nodeName")} has set, can't wait at a gate`;
      leftOut(
        wish,
        place,
        "USHER-P15",
        `${text} of policy ${policyName(wish.ref)} is left out: ${why}`,
        findings,
      );
      return;
    }
    if (listAt(draft.object, ...path).length >= MOST_ELEMENTS) {
      tellTooLong(wish, place, list.what, findings);
      return;
    }
    const was = taken.size > 0 && taken.has(canonical(element));
    if (!add(target, path, known, element, order, applied(wish, place, text, was))) {
      failed(
        { ...wish, failure: "Ignore" },
        place,
        undefined,
        `${place.rule} can't be written here`,
        findings,
      );
      return;
    }
    if (key !== undefined) holders.set(`${list.field}/${key}`, wish.ref);
  }
}

/** How many values an element holds, wherever in it; of policies, whose elements never change. */
const heavy = new WeakMap<JsonObject, number>();

function heavinessOf(element: JsonObject): number {
  const known = heavy.get(element) ?? valuesIn(element);
  heavy.set(element, known);
  return known;
}

function tellTooLong(wish: PlacementRequest, place: Place, what: string, findings: Finding[]): void {
  const message = `${what} of policy ${policyName(wish.ref)} is left out: the list would come to more than ${MOST_ELEMENTS} elements; ask for less in it`;
  failed(wish, place, "USHER-P12", message, findings);
}

function hasNode(nodeName: Json | undefined): boolean {
  return typeof nodeName === "string" && nodeName !== "";
}

/** Where each element stands in the stored list; nothing where that does not count. */
function storedRanks(draft: Draft, path: Path): ReadonlyMap<string, number> | undefined {
  const stored = draft.old === undefined ? undefined : storedOrder(draft, path, at(draft.old, ...path));
  if (stored === undefined) return undefined;
  const ranks = new Map<string, number>();
  // What is deeper than any element of ours no API server has sent; it stays where it is.
  for (const [i, one] of stored.entries()) if (shallow(one)) ranks.set(canonical(one), i);
  return ranks;
}

/** At the end; but what the stored list has comes where it has it, since another order would be another template, and roll out. */
function add(
  { draft, effort }: Target,
  path: Path,
  known: KnownList,
  element: JsonObject,
  order: ReadonlyMap<string, number> | undefined,
  finding: Finding,
): boolean {
  const present = listAt(draft.object, ...path);
  const rank = order?.get(canonical(element));
  // Most come as they stood, each behind those that are there.
  if (order === undefined || rank === undefined || rank > known.highest(order)) {
    if (!draft.append(path, element, finding)) return false;
    known.add(element, rank);
    return true;
  }
  effort.spend(present.length);
  const place = placeIn(present, rank, order);
  const list = [...present.slice(0, place), element, ...present.slice(place)];
  if (!draft.set(path, list, finding, { elements: [element], all: false })) return false;
  known.add(element, rank);
  return true;
}

/** Before the first of those that the stored list has behind the element. */
function placeIn(present: readonly Json[], own: number, order: ReadonlyMap<string, number>): number {
  if (!present.every(shallow)) return present.length;
  const behind = present.findIndex((one) => (order.get(canonical(one)) ?? -1) > own);
  return behind < 0 ? present.length : behind;
}
