import type { z } from "zod";
import type { Draft } from "../../../../core/evaluate/draft.ts";
import type { Finding } from "../../../../core/evaluate/finding.ts";
import { at, canonical, isObject, type Json, type JsonObject, listAt } from "../../../../core/json.ts";
import { type Path, pointer } from "../../../../core/path.ts";
import {
  listRoom,
  MAX_LIST_LENGTH,
  readableElements,
  shallow,
  spelled,
} from "../../../../core/provenance/origin.ts";
import type { Report } from "../../merge/report.ts";
import { storedOrder, storedValue } from "../../merge/stored-value.ts";
import type { Target } from "../../merge/target.ts";
import { STEPS_TO_REPORT, valuesIn } from "../../merge/work-budget.ts";
import { type Criterion, NO_LIMITS } from "../criterion.ts";
import { duplicates, type ElementCheck, parseList, repeated } from "./check-list.ts";
import { addedBy, ownElements, removeElements } from "./injected-elements.ts";
import type { Elements, ElementTexts, KnownList } from "./known-list.ts";
import { type Enforced, unmetElements } from "./unmet-elements.ts";

/**
 * A list is extended up to this, and read up to twice as many: between the two an object has room for what the API server adds. No
 * workload comes near; but an object may hold a hundred thousand.
 */
const MAX_ELEMENTS = MAX_LIST_LENGTH / 2;

type Optional = "excluded" | "consumedByPod" | "kubelet" | "celRules" | "contradictions";

/** What one list differs in from the others. */
interface ListOptions extends Elements, Pick<Criterion<readonly JsonObject[]>, Optional | "mutability"> {
  readonly name: string;
  readonly path: Path;
  /** One element, in a sentence: `toleration`. */
  readonly text: string;
  readonly schema: z.ZodType;
  /** What the API server would refuse in an element. */
  readonly check: ElementCheck;
  /** One element, for people. */
  readonly describe: (element: JsonObject) => string;
  /** Whether elements of the pod's own make another needless. */
  readonly covering?: (own: readonly Json[]) => (element: JsonObject) => boolean;
  /** How it is enforced; absent: a preference. */
  readonly enforced?: Enforced;
  /** The fields of which the API server takes each combination once. @default a repeated element is applied once, with a warning */
  readonly unique?: readonly string[];
}

/**
 * A criterion of a list in which each element counts by itself.
 *
 * Merge:    elements that the pod does not have in this meaning are appended; where a pod can have one of a kind, its own is kept
 *           (USHER-P14); what a pod's own covers is not added.
 * Holds:    idempotent; order-independent except for which policy wins a conflict, and for the order of elements.
 */
export function listCriterion(options: ListOptions): Criterion<readonly JsonObject[]> {
  const { name, path, enforced, unique } = options;
  const {
    check,
    describe: _describe,
    meaning: _meaning,
    key: _key,
    covering: _covering,
    ...common
  } = options;
  return {
    ...common,
    rule: path.join("."),
    recorded: "added",
    list: path,
    parse: (spec, problems) => parseList(spec, path, check, problems),
    contradictions: (wanted, criteria) => [
      ...(unique === undefined ? [] : repeated(wanted, ["spec", ...path], unique)),
      ...(options.contradictions?.(wanted, criteria) ?? []),
    ],
    warnings: (wanted) =>
      unique === undefined ? duplicates(wanted, ["spec", ...path], options.meaning) : [],
    merge: (target, wanted, report) => mergeList(target, options, name, wanted, report),
    ...(enforced === undefined
      ? {}
      : {
          unmet: (podSpec, wanted, budget) =>
            unmetElements(path, listAt(podSpec, ...path), wanted, enforced, budget),
        }),
    injected: (origin, { kept, spec }) => {
      const place = pointer([...spec, ...path]);
      const elements = (origin.added[place] ?? [])
        .filter(isObject)
        .filter((one) => kept.hasSameElement(place, spelled(one)));
      return elements.length > 0 ? elements : undefined;
    },
    remove: (draft, origins, spec) => removeElements(draft, addedBy(origins, [...spec, ...path]), spec, path),
  };
}

function mergeList(
  target: Target,
  list: ListOptions,
  name: string,
  wanted: readonly JsonObject[],
  report: Report,
): void {
  const { draft, spec, holders, budget } = target;
  const path = [...spec, ...list.path];
  const before = draft.get(...path) ?? [];
  if (!Array.isArray(before)) {
    report.unwritable(path, `${list.path.join(".")} is not a list here`);
    return;
  }
  const known = target.lists.of(list, before, budget);
  if (known === undefined) {
    reportTooLong(report, path, list.text);
    return;
  }
  const order = target.lists.ranks(list, () => storedRanks(draft, path));
  const removed = target.lists.removed(list, () => storedValue(draft, path));
  for (const element of wanted) {
    const { steps, text, ...texts } = preparedFor(list, element);
    if (!budget.spend(STEPS_TO_REPORT + 3 * steps)) {
      report.budgetExceeded(path, list.text);
      return;
    }
    if (known.has(texts.meaning)) {
      report.same(path, text, [element]);
      continue;
    }
    const other = known.withKey(texts.key);
    if (other !== undefined) {
      const [has, wants] = [list.describe(other), list.describe(element)];
      const sides = has === wants ? { has, wants: "other settings" } : { has, wants };
      report.conflict(path, "USHER-P14", { field: list.text, holder: `${name}/${texts.key}`, ...sides });
      continue;
    }
    if (!report.restoring && isCovered(target, list, element)) {
      report.same(path, text);
      continue;
    }
    if (report.immutable(path)) return;
    const excluded = list.excluded?.(draft.get(...spec), [], NO_LIMITS);
    if (excluded !== undefined) {
      report.skipped(path, "USHER-P15", `${text} of ${report.policy} skipped: ${excluded}`);
      return;
    }
    if (listAt(draft.object, ...path).length >= MAX_ELEMENTS) {
      reportTooLong(report, path, list.text);
      return;
    }
    const was = removed.size > 0 && removed.has(canonical(element));
    if (!add(target, path, known, element, texts, order, report.applied(path, text, was))) {
      report.unwritable(path, `${list.path.join(".")} can't be written here`);
      return;
    }
    if (texts.key !== undefined) holders.set(`${name}/${texts.key}`, report.request.ref);
  }
}

/**
 * By what the pod has of its own: an element of another policy may go with that policy. What is restored was added once, and stays.
 */
function isCovered({ draft, spec, lists }: Target, list: ListOptions, element: JsonObject): boolean {
  const { covering } = list;
  return (
    covering !== undefined &&
    lists.covered(list, () => covering(ownElements(draft, [...spec, ...list.path])))(element)
  );
}

interface PreparedElement extends ElementTexts {
  readonly steps: number;
  readonly text: string;
}

/** Of policies, whose elements never change: dropping it changes no result. */
const prepared = new WeakMap<JsonObject, PreparedElement>();

function preparedFor(list: ListOptions, element: JsonObject): PreparedElement {
  const found = prepared.get(element);
  if (found !== undefined) return found;
  const made = {
    steps: valuesIn(element),
    text: `${list.text} ${list.describe(element)}`,
    meaning: list.meaning(element),
    key: list.key?.(element),
  };
  prepared.set(element, made);
  return made;
}

function reportTooLong(report: Report, path: Path, text: string): void {
  const message = `${text} of ${report.policy} skipped: the list would have more than ${MAX_ELEMENTS} elements, or is too large to be read; use fewer`;
  report.failed(path, "USHER-P12", message);
}

/** The position of each element in the stored list; nothing where that does not count. */
function storedRanks(draft: Draft, path: Path): ReadonlyMap<string, number> | undefined {
  const stored = draft.old === undefined ? undefined : storedOrder(draft, path, at(draft.old, ...path));
  if (stored === undefined) return undefined;
  const ranks = new Map<string, number>();
  // No API server sends anything deeper than an element of a policy; it stays where it is.
  for (const [i, one] of (readableElements(stored, listRoom()) ?? []).entries()) ranks.set(canonical(one), i);
  return ranks;
}

/** At the end; but an element of the stored list goes to its position there: another order would be another template, and roll out. */
function add(
  { draft, budget }: Target,
  path: Path,
  known: KnownList,
  element: JsonObject,
  texts: ElementTexts,
  order: ReadonlyMap<string, number> | undefined,
  finding: Finding,
): boolean {
  const rank = order?.get(canonical(element));
  // Most are merged in the stored order, each behind those that are there.
  if (order === undefined || rank === undefined || rank > known.highest(order)) {
    if (!draft.append(path, element, finding)) return false;
    known.add(element, texts, rank);
    return true;
  }
  const present = listAt(draft.object, ...path);
  budget.spend(present.length);
  const place = positionIn(present, rank, order);
  const list = [...present.slice(0, place), element, ...present.slice(place)];
  if (!draft.set(path, list, finding, { elements: [element], all: false })) return false;
  known.add(element, texts, rank);
  return true;
}

/** Before the first of those that follow the element in the stored list. */
function positionIn(present: readonly Json[], own: number, order: ReadonlyMap<string, number>): number {
  if (!present.every(shallow)) return present.length;
  const behind = present.findIndex((one) => (order.get(canonical(one)) ?? -1) > own);
  return behind < 0 ? present.length : behind;
}
