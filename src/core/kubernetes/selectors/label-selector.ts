import { isObject, type Json, type JsonObject, own } from "../../json.ts";
import type { Path } from "../../path.ts";
import { type FieldError, quoted, typeName } from "../field-error.ts";
import { checkLabelKey, checkLabelValue } from "../names.ts";
import {
  checkExpressionFields,
  checkLabelSyntax,
  checkSetValues,
  readExpression,
} from "./selector-expression.ts";
import { type Values, valuesOf } from "./values.ts";

export interface Requirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
  readonly values: Values;
}

export type CompiledSelector =
  | { readonly kind: "nothing" }
  | { readonly kind: "everything" }
  | { readonly kind: "requirements"; readonly requirements: readonly Requirement[] };

export type SelectorProblem = FieldError;

const NOTHING: CompiledSelector = { kind: "nothing" };
const EVERYTHING: CompiledSelector = { kind: "everything" };

/**
 * An absent selector selects nothing, an empty one everything. With any problem the returned selector selects nothing,
 * because half a selector would select more than its author intended; the caller decides whether to continue.
 */
export function compileSelector(
  selector: Json | undefined,
  path: Path,
): { selector: CompiledSelector; problems: SelectorProblem[] } {
  if (selector === undefined || selector === null) return { selector: NOTHING, problems: [] };
  if (!isObject(selector)) {
    const message = `a label selector must be an object, got ${typeName(selector)}`;
    return { selector: NOTHING, problems: [{ path, message }] };
  }
  const problems: FieldError[] = [];
  for (const field of Object.keys(selector)) {
    if (field === "matchLabels" || field === "matchExpressions" || selector[field] === undefined) continue;
    const message = `unknown field ${quoted(field)}: a label selector has matchLabels and matchExpressions`;
    problems.push({ path: [...path, field], message });
  }
  const requirements = [
    ...compileLabels(own(selector, "matchLabels"), [...path, "matchLabels"], problems),
    ...compileExpressions(own(selector, "matchExpressions"), [...path, "matchExpressions"], problems),
  ];
  if (problems.length > 0) return { selector: NOTHING, problems };
  return {
    selector: requirements.length === 0 ? EVERYTHING : { kind: "requirements", requirements },
    problems,
  };
}

function compileLabels(labels: Json | undefined, path: Path, problems: FieldError[]): Requirement[] {
  if (labels === undefined || labels === null) return [];
  if (!isObject(labels)) {
    problems.push({ path, message: `matchLabels must be an object, got ${typeName(labels)}` });
    return [];
  }
  const requirements: Requirement[] = [];
  for (const key of Object.keys(labels)) {
    const value = labels[key];
    if (value === undefined) continue;
    // A null does not count as absent: dropping the label would select more than its author intended.
    const wrongValue =
      typeof value === "string"
        ? checkLabelValue(value)
        : `a label value must be a string, got ${typeName(value)}`;
    for (const message of [checkLabelKey(key), wrongValue]) {
      if (message !== undefined) problems.push({ path: [...path, key], message });
    }
    if (typeof value === "string") requirements.push({ key, operator: "In", values: valuesOf([value]) });
  }
  return requirements;
}

function compileExpressions(list: Json | undefined, path: Path, problems: FieldError[]): Requirement[] {
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) {
    problems.push({ path, message: `matchExpressions must be a list, got ${typeName(list)}` });
    return [];
  }
  const requirements: Requirement[] = [];
  for (const [i, item] of list.entries()) {
    checkExpressionFields(item, [...path, i], problems);
    const expression = readExpression(item, [...path, i], problems);
    if (expression === undefined) continue;
    checkLabelSyntax(expression, [...path, i], problems);
    checkSetValues(expression, [...path, i], problems);
    const { key, operator } = expression;
    if (operator === "In" || operator === "NotIn" || operator === "Exists" || operator === "DoesNotExist") {
      requirements.push({ key, operator, values: valuesOf(expression.values) });
      continue;
    }
    const message = `unsupported operator ${quoted(operator)}: must be one of In, NotIn, Exists, DoesNotExist`;
    problems.push({ path: [...path, i, "operator"], message });
  }
  return requirements;
}

export function matches(selector: CompiledSelector, labels: JsonObject | undefined): boolean {
  if (selector.kind !== "requirements") return selector.kind === "everything";
  for (const requirement of selector.requirements) {
    if (!meets(requirement, labelValue(labels, requirement.key))) return false;
  }
  return true;
}

/** The value of a label. Anything but a string is not a label: the API server would have refused it. */
export function labelValue(labels: JsonObject | undefined, key: string): string | undefined {
  const value = own(labels, key);
  return typeof value === "string" ? value : undefined;
}

/** Whether a label with this value, or its absence, meets the requirement. Absence meets NotIn and DoesNotExist. */
export function meets(requirement: Requirement, value: string | undefined): boolean {
  switch (requirement.operator) {
    case "In":
      return value !== undefined && requirement.values.has(value);
    case "NotIn":
      return value === undefined || !requirement.values.has(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
  }
}

/**
 * The same if only some labels are known, as for a node that has yet to register. A key that `known` denies may be
 * absent or have any value, regardless of `labels`. The result is exact: "unknown" only if the unknown labels could
 * change it.
 */
export function matchesPartly(
  selector: CompiledSelector,
  labels: JsonObject | undefined,
  known: (key: string) => boolean,
): "yes" | "no" | "unknown" {
  if (selector.kind !== "requirements") return selector.kind === "everything" ? "yes" : "no";
  const open = new Map<string, Requirement[]>();
  for (const requirement of selector.requirements) {
    if (known(requirement.key)) {
      if (!meets(requirement, labelValue(labels, requirement.key))) return "no";
      continue;
    }
    const together = open.get(requirement.key);
    if (together === undefined) open.set(requirement.key, [requirement]);
    else together.push(requirement);
  }
  for (const together of open.values()) if (!canBeMet(together)) return "no";
  return open.size === 0 ? "yes" : "unknown";
}

/** Whether one label could meet all of these, which are about one key. That it could fail them is always so. */
function canBeMet(requirements: readonly Requirement[]): boolean {
  if (requirements.every((requirement) => meets(requirement, undefined))) return true;
  // Then present: with one of the values of an In or, without an In, with a value that no requirement names.
  const allowed = requirements.find((requirement) => requirement.operator === "In");
  if (allowed === undefined) return !requirements.some(({ operator }) => operator === "DoesNotExist");
  for (const value of allowed.values)
    if (requirements.every((requirement) => meets(requirement, value))) return true;
  return false;
}

/** Why the selector does not match, in one short sentence about its first requirement that fails. */
export function whyNot(selector: CompiledSelector, labels: JsonObject | undefined): string | undefined {
  if (selector.kind === "everything") return undefined;
  if (selector.kind === "nothing") return "selects nothing";
  for (const requirement of selector.requirements) {
    const value = labelValue(labels, requirement.key);
    if (meets(requirement, value)) continue;
    const { key } = requirement;
    const found = value === undefined ? `there is no label ${key}` : `${key} is ${shown(value)}`;
    return `needs ${wanted(requirement)}, ${found}`;
  }
  return undefined;
}

/** What a selector selects, for people: `app=etcd, disk in (fast, fastest)`. */
export function describeSelector(selector: CompiledSelector | undefined): string {
  if (selector === undefined) return "unknown: the selector can't be read";
  if (selector.kind === "nothing") return "none";
  if (selector.kind === "everything") return "all";
  return selector.requirements.map(wanted).join(", ");
}

function wanted({ key, operator, values }: Requirement): string {
  if (operator === "Exists") return `a label ${key}`;
  if (operator === "DoesNotExist") return `no label ${key}`;
  const texts = [...values].map(shown);
  const equals = operator === "In" ? "=" : "!=";
  const within = operator === "In" ? "in" : "not in";
  return texts.length === 1 ? `${key}${equals}${texts[0]}` : `${key} ${within} (${texts.join(", ")})`;
}

function shown(value: string): string {
  return value === "" ? '""' : value;
}

/** A value that none of a few sets has: labels of objects may be any. */
const FRESH = "any";

/** Labels that match all of these selectors; `undefined` where no labels can. */
export function labelsMatching(selectors: readonly CompiledSelector[]): Record<string, string> | undefined {
  if (selectors.some(({ kind }) => kind === "nothing")) return undefined;
  const requirements = selectors.flatMap((one) => (one.kind === "requirements" ? one.requirements : []));
  const labels: Record<string, string> = {};
  for (const [key, wanted] of Map.groupBy(requirements, (one) => one.key)) {
    const listed = wanted.find(({ operator }) => operator === "In");
    const present = listed !== undefined || wanted.some(({ operator }) => operator === "Exists");
    const candidates = listed === undefined ? freshValues(wanted) : [...listed.values];
    const value = present
      ? candidates.find((one) => wanted.every((requirement) => meets(requirement, one)))
      : undefined;
    if (present && value === undefined) return undefined;
    if (value !== undefined) labels[key] = value;
  }
  return labels;
}

/** One more than the requirements forbid, so that one is left. */
function freshValues(wanted: readonly Requirement[]): string[] {
  const forbidden = wanted.reduce((sum, { values }) => sum + [...values].length, 0);
  return Array.from({ length: forbidden + 1 }, (_, i) => `${FRESH}${i === 0 ? "" : i}`);
}

/** Whether every object that the narrow selector matches is one that the wide one matches. Sure where true; false may be unknown. */
export function coversSelector(wide: CompiledSelector, narrow: CompiledSelector): boolean {
  if (wide.kind === "everything" || narrow.kind === "nothing") return true;
  if (wide.kind === "nothing" || narrow.kind === "everything") return false;
  return wide.requirements.every((requirement) =>
    narrow.requirements.some((one) => one.key === requirement.key && impliesRequirement(one, requirement)),
  );
}

function impliesRequirement(given: Requirement, wanted: Requirement): boolean {
  const values = [...given.values];
  if (given.operator === "In") return values.every((value) => meets(wanted, value));
  if (given.operator === "DoesNotExist") return meets(wanted, undefined);
  if (given.operator === "Exists") return wanted.operator === "Exists";
  return wanted.operator === "NotIn" && [...wanted.values].every((value) => values.includes(value));
}

/**
 * The labels that an object must have to match, for an index: with one of these values or, if there are none, with any.
 * Empty for a selector that requires no label, and for one that selects nothing: check `kind` first.
 */
export function requiredLabels(
  selector: CompiledSelector,
): readonly { key: string; values: readonly string[] | undefined }[] {
  if (selector.kind !== "requirements") return [];
  const found: { key: string; values: readonly string[] | undefined }[] = [];
  for (const { key, operator, values } of selector.requirements) {
    if (operator === "In") found.push({ key, values: [...values] });
    else if (operator === "Exists") found.push({ key, values: undefined });
  }
  return found;
}
