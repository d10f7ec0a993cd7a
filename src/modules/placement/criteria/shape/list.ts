import type { z } from "zod";
import type { Draft } from "../../../../core/evaluate/draft.ts";
import { at, canonical, isObject, type Json, type JsonObject, listAt } from "../../../../core/json.ts";
import { type Path, pointer } from "../../../../core/path.ts";
import {
  listRoom,
  MAX_LIST_LENGTH,
  readableElements,
  readProvenance,
} from "../../../../core/provenance/annotation.ts";
import { injectionText, type MergeContext } from "../../merge/context.ts";
import type { Report } from "../../merge/report.ts";
import { STEPS_TO_REPORT, valuesIn } from "../../merge/work-budget.ts";
import { type Criterion, NO_LIMITS } from "../criterion.ts";
import { duplicates, type ElementCheck, parseList, repeated } from "./check-list.ts";
import type { Elements, ElementTexts } from "./known-list.ts";
import { type Enforced, unmetElements } from "./unmet-elements.ts";

/**
 * A list is extended up to this, and read up to twice as many: between the two an object has room for what the API server adds. No
 * workload comes near; but an object may hold a hundred thousand.
 */
const MAX_ELEMENTS = MAX_LIST_LENGTH / 2;

type Optional = "excluded" | "judgedBy" | "consumedByPod" | "kubelet" | "celRules" | "contradictions";

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
    injected: (origin, { has, spec }) => {
      const place = pointer([...spec, ...path]);
      const elements = (origin.added[place] ?? [])
        .filter(isObject)
        .filter((one) => has.hasSameElement(place, one));
      return elements.length > 0 ? elements : undefined;
    },
    recorded: (elements, spec) => ({ set: [], added: { [pointer([...spec, ...path])]: elements } }),
    outdated: (elements, wanted = []) => {
      const now = new Set(wanted.map(canonical));
      const gone = elements.filter((one) => !now.has(canonical(one)));
      return gone.length === 0 ? undefined : gone;
    },
    without: (present, injected) => {
      const gone = new Set(injected.flat().map(canonical));
      const readable = new Set(readableElements(present, listRoom()) ?? []);
      if (!Array.isArray(present)) return present;
      const rest = present.filter((one) => !readable.has(one) || !gone.has(canonical(one)));
      return rest.length === 0 ? undefined : rest;
    },
  };
}

function mergeList(
  target: MergeContext,
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
    const was = target.removed.has(injectionText(path, element));
    if (!draft.append(path, element, report.applied(path, text, was))) {
      report.unwritable(path, `${list.path.join(".")} can't be written here`);
      return;
    }
    known.add(element, texts);
    if (texts.key !== undefined) holders.set(`${name}/${texts.key}`, report.request.ref);
  }
}

/**
 * By what the pod has of its own: an element of another policy may go with that policy. What is restored was added once, and stays.
 */
function isCovered({ draft, spec, lists }: MergeContext, list: ListOptions, element: JsonObject): boolean {
  const { covering } = list;
  return (
    covering !== undefined &&
    lists.covered(list, () => covering(ownElements(draft, [...spec, ...list.path])))(element)
  );
}

/** The elements of a list that no policy added, neither by the stored object's annotation nor by that of an earlier call. */
function ownElements({ object, old }: Draft, list: Path): readonly Json[] {
  const elements = readableElements(at(object, ...list), listRoom()) ?? [];
  const place = pointer(list);
  const origins = [...readProvenance(old).origins, ...readProvenance(object).origins];
  const added = new Set(origins.flatMap(({ added }) => added[place] ?? []).map(canonical));
  return added.size === 0 ? elements : elements.filter((one) => !added.has(canonical(one)));
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
