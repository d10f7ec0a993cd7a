import { at, isObject, type Json, type JsonObject, own } from "../../json.ts";
import type { Path } from "../../path.ts";
import { type FieldError, quoted, typeName } from "../field-error.ts";
import { checkSubdomain } from "../names.ts";
import { parseInt64 } from "./integer.ts";
import { labelValue, meets, type Requirement } from "./label-selector.ts";
import {
  checkExpressionFields,
  checkLabelSyntax,
  checkSetValues,
  type Expression,
  readExpression,
} from "./selector-expression.ts";
import { valuesOf } from "./values.ts";

export interface NodeLike {
  readonly name: string;
  readonly labels: JsonObject | undefined;
}

/** Greater or less than a number: labels are strings, so the label's value is parsed as a 64-bit integer. */
export interface NumericRequirement {
  readonly key: string;
  readonly operator: "Gt" | "Lt";
  readonly bound: bigint;
}

export interface NodeNameRequirement {
  readonly operator: "In" | "NotIn";
  readonly name: string;
}

/**
 * One term, at its index in the list. An empty term matches no node. An invalid one (with an unreadable requirement)
 * matches no node either, and does not affect the other terms, as in the scheduler. An unknown field is a problem but
 * has no effect, because the API server drops it.
 */
export type NodeTerm =
  | { readonly kind: "empty" | "broken" }
  | {
      readonly kind: "usable";
      readonly labels: readonly (Requirement | NumericRequirement)[];
      readonly names: readonly NodeNameRequirement[];
    };

const FIELDS: ReadonlySet<string> = new Set(["matchExpressions", "matchFields"]);
/** The only field of a node that a selector may name. */
const NODE_NAME = "metadata.name";

/**
 * The terms of a node selector (`{nodeSelectorTerms: […]}`), in the same number and order. An absent selector gives no
 * terms, and no terms match no node: the caller decides the meaning of an absent selector.
 */
export function compileNodeSelector(
  value: Json | undefined,
  path: Path,
): { terms: readonly NodeTerm[]; problems: FieldError[] } {
  if (value === undefined || value === null) return { terms: [], problems: [] };
  if (!isObject(value)) {
    return {
      terms: [],
      problems: [{ path, message: `a node selector must be an object, got ${typeName(value)}` }],
    };
  }
  const problems: FieldError[] = [];
  for (const field of Object.keys(value)) {
    if (field === "nodeSelectorTerms" || value[field] === undefined) continue;
    const message = `a node selector has no field ${quoted(field)}: it has nodeSelectorTerms`;
    problems.push({ path: [...path, field], message });
  }
  const list = own(value, "nodeSelectorTerms") ?? [];
  const termsPath = [...path, "nodeSelectorTerms"];
  if (!Array.isArray(list)) {
    problems.push({
      path: termsPath,
      message: `nodeSelectorTerms must be a list, got ${typeName(list)}`,
    });
    return { terms: [], problems };
  }
  if (list.length === 0)
    problems.push({ path: termsPath, message: "a node selector needs at least one term" });
  return { terms: list.map((term: Json, i) => compileTerm(term, [...termsPath, i], problems)), problems };
}

/** One term alone, such as that of a preference. */
export function compileTerm(term: Json | undefined, path: Path, problems: FieldError[]): NodeTerm {
  // Go decodes a null in the list as an empty term.
  if (term === null || term === undefined) return { kind: "empty" };
  if (!isObject(term)) {
    problems.push({ path, message: `a node selector term must be an object, got ${typeName(term)}` });
    return { kind: "broken" };
  }
  for (const field of Object.keys(term)) {
    if (FIELDS.has(field) || term[field] === undefined) continue;
    const message = `a node selector term has no field ${quoted(field)}: it has matchExpressions and matchFields`;
    problems.push({ path: [...path, field], message });
  }
  const labels = compileList(term, "matchExpressions", path, problems, compileLabel);
  const names = compileList(term, "matchFields", path, problems, compileField);
  if (labels === undefined || names === undefined) return { kind: "broken" };
  return labels.length === 0 && names.length === 0 ? { kind: "empty" } : { kind: "usable", labels, names };
}

/** `undefined` if one of the requirements can't be read. */
function compileList<T>(
  term: JsonObject,
  field: string,
  path: Path,
  problems: FieldError[],
  compile: (expression: Expression, path: Path, problems: FieldError[]) => T | undefined,
): T[] | undefined {
  const list = own(term, field) ?? [];
  if (!Array.isArray(list)) {
    problems.push({ path: [...path, field], message: `${field} must be a list, got ${typeName(list)}` });
    return undefined;
  }
  const compiled: T[] = [];
  const wrong: FieldError[] = [];
  for (const [i, item] of list.entries()) {
    const here = [...path, field, i];
    checkExpressionFields(item, here, problems);
    const expression = readExpression(item, here, wrong);
    const requirement = expression === undefined ? undefined : compile(expression, here, wrong);
    if (requirement !== undefined) compiled.push(requirement);
  }
  problems.push(...wrong);
  return wrong.length === 0 ? compiled : undefined;
}

function compileLabel(
  expression: Expression,
  path: Path,
  problems: FieldError[],
): Requirement | NumericRequirement | undefined {
  checkLabelSyntax(expression, path, problems);
  checkSetValues(expression, path, problems);
  const { key, operator, values } = expression;
  switch (operator) {
    case "In":
    case "NotIn":
    case "Exists":
    case "DoesNotExist":
      return { key, operator, values: valuesOf(values) };
    case "Gt":
    case "Lt": {
      // The value must be a label value as well (checked above), so a bound with a sign is refused by Kubernetes.
      const bound = parseInt64(values[0] ?? "");
      if (values.length === 1 && bound !== undefined) return { key, operator, bound };
      const message = `the operator ${operator} needs exactly one value, an integer of at most 64 bits`;
      problems.push({ path: [...path, "values"], message });
      return undefined;
    }
    default: {
      const operators = "must be one of In, NotIn, Exists, DoesNotExist, Gt, Lt";
      const message = `unsupported operator ${quoted(operator)}: ${operators}`;
      problems.push({ path: [...path, "operator"], message });
      return undefined;
    }
  }
}

function compileField(
  { key, operator, values }: Expression,
  path: Path,
  problems: FieldError[],
): NodeNameRequirement | undefined {
  const problem = (message: string, ...steps: Path) => problems.push({ path: [...path, ...steps], message });
  if (key !== NODE_NAME)
    problem(`${quoted(key)} is not a supported field of matchFields: use ${NODE_NAME}`, "key");
  if (values.length !== 1) problem("matchFields needs exactly one value, the name of a node", "values");
  for (const [i, name] of values.entries()) {
    const wrong = checkSubdomain(name);
    if (wrong !== undefined) problem(`no node has such a name: ${wrong}`, "values", i);
  }
  const [name] = values;
  if (operator === "In" || operator === "NotIn") return name === undefined ? undefined : { operator, name };
  problem(`unsupported operator ${quoted(operator)} in matchFields: must be In or NotIn`, "operator");
  return undefined;
}

/** True if any of the terms matches the node; a term matches if all of its requirements do. */
export function matchesNode(terms: readonly NodeTerm[], node: NodeLike): boolean {
  return terms.some((term) => termMatches(term, node));
}

function termMatches(term: NodeTerm, node: NodeLike): boolean {
  if (term.kind !== "usable") return false;
  for (const requirement of term.labels) {
    if (!meetsNodeRequirement(requirement, labelValue(node.labels, requirement.key))) return false;
  }
  // The scheduler ignores matchFields for a node that has no name yet.
  if (node.name === "") return true;
  return term.names.every(({ operator, name }) => (operator === "In") === (name === node.name));
}

/** Whether a label with this value, or its absence, meets a requirement of a term. */
export function meetsNodeRequirement(
  requirement: Requirement | NumericRequirement,
  value: string | undefined,
): boolean {
  if (!("bound" in requirement)) return meets(requirement, value);
  const number = value === undefined ? undefined : parseInt64(value);
  if (number === undefined) return false;
  return requirement.operator === "Gt" ? number > requirement.bound : number < requirement.bound;
}

/** A pod's nodeSelector and required node affinity, compiled for matching many nodes. */
export interface PodPlacement {
  /** Labels that must have exactly these values; `undefined` if no node can match. */
  readonly nodeSelector: readonly (readonly [key: string, value: string])[] | undefined;
  /** Absent if the pod requires no node affinity. */
  readonly terms: readonly NodeTerm[] | undefined;
}

export function compilePodPlacement(podSpec: Json | undefined): PodPlacement {
  const required = at(podSpec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution");
  const constrained = required !== undefined && required !== null;
  return {
    nodeSelector: selectorEntries(own(podSpec, "nodeSelector")),
    terms: constrained ? compileNodeSelector(required, []).terms : undefined,
  };
}

function selectorEntries(selector: Json | undefined): [string, string][] | undefined {
  if (selector === undefined || selector === null) return [];
  if (!isObject(selector)) return undefined;
  const entries: [string, string][] = [];
  for (const [key, value] of Object.entries(selector)) {
    if (value === undefined || value === null) continue;
    if (typeof value !== "string") return undefined;
    entries.push([key, value]);
  }
  return entries;
}

export function matchesPlacement(placement: PodPlacement, node: NodeLike): boolean {
  if (placement.nodeSelector === undefined) return false;
  for (const [key, value] of placement.nodeSelector) if (labelValue(node.labels, key) !== value) return false;
  return placement.terms === undefined || matchesNode(placement.terms, node);
}
