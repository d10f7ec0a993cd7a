import type { z } from "zod";
import type { Draft } from "../../../core/decision/draft.ts";
import {
  at,
  canonical,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  own,
  stringAt,
} from "../../../core/json.ts";
import { celValue } from "../../../core/kubernetes/cel.ts";
import { typeName } from "../../../core/kubernetes/field-error.ts";
import { type Path, pointer } from "../../../core/path.ts";
import { idle, PROBLEM, type Problem, problem } from "../../../core/policy/problem.ts";
import {
  listRoom,
  MAX_LIST_LENGTH,
  readableElements,
  readProvenance,
} from "../../../core/provenance/annotation.ts";
import {
  type CompiledCriterion,
  celExtends,
  distinct,
  fieldOf,
  isAdded,
  LARGE,
  patch,
  placeOf,
  type Variable,
} from "./cel.ts";
import { injectionText, type MergeContext } from "./context.ts";
import { type Criterion, NO_LIMITS } from "./criterion.ts";
import type { Elements, ElementTexts } from "./known-list.ts";
import type { Report } from "./report.ts";
import { type Enforced, unmetElements } from "./unmet.ts";
import { sizeOf, valuesIn } from "./work-limit.ts";

/**
 * A list is extended up to this, and read up to twice as many: between the two an object has space for the API server's
 * additions. No workload comes near; but an object may have a hundred thousand.
 */
const MAX_ELEMENTS = MAX_LIST_LENGTH / 2;

type Optional = "excluded" | "judgedBy" | "consumedByPod" | "kubelet" | "celRules" | "contradictions";

/** The specifics of one list. */
interface ListOptions extends Elements, Pick<Criterion<readonly JsonObject[]>, Optional | "mutability"> {
  readonly name: string;
  readonly path: Path;
  /** One element, in a sentence: `toleration`. */
  readonly text: string;
  readonly schema: z.ZodType;
  /** The API server's errors for an element. */
  readonly check: ElementCheck;
  /** One element, in readable form. */
  readonly describe: (element: JsonObject) => string;
  /** Whether the pod's own elements make another needless. */
  readonly covering?: (own: readonly Json[]) => (element: JsonObject) => boolean;
  /** How it is enforced; absent: a preference. */
  readonly enforced?: Enforced;
  /** The fields whose combination the API server accepts once. @default a repeated element is applied once, with a warning */
  readonly unique?: readonly string[];
  /** Elements in CEL. @default they are compared as they are */
  readonly inCel?: ElementsInCel;
}

/** How elements of a list are compared in CEL. */
interface ElementsInCel {
  readonly variables: readonly Variable[];
  /** The pod's elements. */
  readonly present: string;
  /** A policy's elements, each once. */
  readonly elements: (wanted: readonly JsonObject[]) => readonly JsonObject[];
  /** Whether element `p` of the pod makes one `e` of the policy needless or impossible. */
  readonly excludes: string;
  /** Element `e` as a pod has it. */
  readonly written: string;
  /** Whether the pod meets an element. */
  readonly meets: (element: JsonObject) => string;
}

/**
 * A criterion of a list in which each element counts by itself.
 *
 * Merge:    elements that the pod does not have in this meaning are appended; where a pod can have one of a kind, its own is kept
 *           (USHER-P14); what a pod's own covers is not added.
 * Holds:    idempotent; order-independent except for which policy wins a conflict, and for the order of elements.
 */
export function listCriterion(
  options: ListOptions,
): Criterion<readonly JsonObject[], readonly PreparedElement[]> {
  const { name, path, enforced, unique } = options;
  const {
    check,
    describe: _describe,
    meaning: _meaning,
    key: _key,
    covering: _covering,
    inCel: _inCel,
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
    sizeOf: (elements) => sizeOf(elements.length, valuesIn(elements)),
    prepare: (elements) => elements.map((element) => preparedElement(options, element)),
    merge: (target, wanted, report) => mergeList(target, options, name, wanted, report),
    ...(enforced === undefined
      ? {}
      : {
          unmet: (pod, wanted, limit) => unmetElements(pod, path, wanted, enforced, limit),
        }),
    compile: (wanted) => compileList(options, wanted),
    firstCounts: unique === undefined && options.key === undefined ? "never" : "for other values",
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
  wanted: readonly PreparedElement[],
  report: Report,
): void {
  const { draft, spec, holders } = target;
  const path = [...spec, ...list.path];
  const before = draft.get(...path) ?? [];
  if (!Array.isArray(before)) {
    report.unwritable(path, `${list.path.join(".")} is not a list here`);
    return;
  }
  const known = target.lists.of(list, before);
  if (known === undefined) {
    reportTooLong(report, path, list.text);
    return;
  }
  for (const { element, text, ...texts } of wanted) {
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

/** Each element is added by itself. */
function compileList(list: ListOptions, wanted: readonly JsonObject[]): CompiledCriterion {
  const { name, path, enforced, inCel = comparedInCel(list) } = list;
  const { variables, present, elements, excludes, written, meets } = inCel;
  const added = { variable: `${name}ToAdd`, path };
  const isMissing = `!${present}.exists(p, ${excludes})`;
  const required = enforced === undefined ? [] : wanted.filter(enforced.only ?? (() => true));
  return {
    variables: [
      ...variables,
      { name: added.variable, expression: `dyn(${celValue(elements(wanted))}.filter(e, ${isMissing}))` },
    ],
    patches: [
      `(!${fieldOf(path)}.hasValue() && ${isAdded(added)} ? [${patch("add", placeOf(path), "[]")}] : [])`,
      `variables.${added.variable}.map(e, ${patch("add", placeOf([...path, "-"]), written)})`,
    ],
    added,
    checks: required.map((element) => ({
      expression: meets(element),
      variables,
      path,
      wants: `the policy's entry ${stringAt(element, enforced?.namedBy ?? "") ?? ""}`.trimEnd(),
    })),
    cost: 21 * wanted.length * LARGE.elements,
  };
}

function comparedInCel({ path, unique }: ListOptions): ElementsInCel {
  const present = `${fieldOf(path)}.orValue([])`;
  return {
    variables: [],
    present,
    elements: (wanted) => distinct(wanted, (one) => one),
    excludes: unique?.map((field) => `p.${field} == e.${field}`).join(" && ") ?? "p == e",
    written: "e",
    meets: (element) => `${present}.exists(p, ${celExtends("p", element)})`,
  };
}

/**
 * By the pod's own elements: an element of another policy may be removed with that policy. A restored element was added
 * once, and stays.
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

/** An element of a policy, with the texts by which it is looked for. */
export interface PreparedElement extends ElementTexts {
  readonly element: JsonObject;
  readonly canonical: string;
  /** In a sentence: `toleration pool=etcd:NoSchedule`. */
  readonly text: string;
}

function preparedElement(list: ListOptions, element: JsonObject): PreparedElement {
  return {
    element,
    canonical: canonical(element),
    text: `${list.text} ${list.describe(element)}`,
    meaning: list.meaning(element),
    key: list.key?.(element),
  };
}

function reportTooLong(report: Report, path: Path, text: string): void {
  const message = `${text} of ${report.policy} skipped: the list would have more than ${MAX_ELEMENTS} elements, or is too large to be read; use fewer`;
  report.failed(path, "USHER-P12", message);
}

/** The API server's errors for one element of a list. */
type ElementCheck = (value: Json, path: Path) => readonly { readonly path: Path; readonly message: string }[];

/** The elements of a policy's spec at a path; empty if unreadable, which is a problem. */
function parseList(
  spec: JsonObject,
  path: Path,
  check: ElementCheck,
  problems: Problem[],
): readonly JsonObject[] | undefined {
  const value = at(spec, ...path);
  if (value === undefined || value === null) return undefined;
  const place = ["spec", ...path];
  if (!Array.isArray(value)) {
    problems.push(problem(place, `must be a list, got ${typeName(value)}`));
    return undefined;
  }
  for (const [i, item] of value.entries()) {
    for (const found of check(item, [...place, i])) problems.push(problem(found.path, found.message));
  }
  return storedForm(value);
}

/** Elements with the same key fields, which the API server accepts once. */
function repeated(list: readonly JsonObject[], path: Path, unique: readonly string[]): Problem[] {
  const seen = new Set<string>();
  return list.flatMap((item, i) => {
    const key = JSON.stringify(unique.map((name) => own(item, name) ?? null));
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [problem([...path, i], `duplicate ${unique.join(" and ")}: a pod may have it once`)];
  });
}

/** Elements that mean the same as one before them. */
export function duplicates(
  list: readonly JsonObject[],
  path: Path,
  meaning: (element: Json) => string,
): Problem[] {
  const first = new Map<string, number>();
  return list.flatMap((item, i) => {
    const text = meaning(item);
    const other = first.get(text);
    if (other === undefined) first.set(text, i);
    return other === undefined
      ? []
      : [
          {
            ...idle(PROBLEM.noEffect, [...path, i], `means the same as [${other}] and is applied once`),
            fix: { remove: true } as const,
          },
        ];
  });
}

/**
 * The objects of a list as an API server stores them: without nulls, members sorted. So a policy from a file and the same one from a
 * cluster give the same bytes. From a cluster it is the list itself, which the policy holds anyway.
 */
export function storedForm(list: readonly Json[]): readonly JsonObject[] | undefined {
  const objects = list.map(stored).filter(isObject);
  if (objects.length === 0) return undefined;
  const same = objects.length === list.length && objects.every((object, i) => object === list[i]);
  return same ? (list as readonly JsonObject[]) : objects;
}

function stored(value: Json): Json {
  if (Array.isArray(value)) {
    const items = value.map(stored);
    return items.every((item, i) => item === value[i]) ? value : items;
  }
  if (!isObject(value)) return value;
  const names = Object.keys(value);
  const members = names.toSorted().flatMap((name): [string, Json][] => {
    const member = value[name];
    return member === undefined || member === null ? [] : [[name, stored(member)]];
  });
  const same =
    members.length === names.length &&
    members.every(([name, member], i) => name === names[i] && member === value[name]);
  return same ? value : Object.fromEntries(members);
}
