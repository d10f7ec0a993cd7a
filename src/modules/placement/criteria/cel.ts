/**
 * Criteria in CEL, for policies that the API server evaluates by itself: each criterion has its own expressions, and here is what they
 * have in common.
 *
 * A mutation is one JSON Patch, because the fields are atomic and an ApplyConfiguration can't extend them. It never copies a value of the
 * pod into the patch: the API server of 1.37 can't write a value back that a match condition has read before.
 */
import { equal, isObject, type Json } from "../../../core/json.ts";
import { celString, celValue } from "../../../core/kubernetes/cel.ts";
import type { LeftOut } from "../../../core/module/compile.ts";
import { type Path, pointer } from "../../../core/path.ts";
import type { Criteria } from "./criterion.ts";

/** A variable of an admission policy: evaluated once, and only if it is used. */
export interface Variable {
  readonly [key: string]: string;
  readonly name: string;
  readonly expression: string;
}

/** A requirement that new pods are checked for. */
export interface CelCheck {
  readonly expression: string;
  /** Those that it may use. */
  readonly variables?: readonly Variable[];
  /** Below a pod's spec. */
  readonly path: Path;
  readonly wants: string;
}

/** A list of elements that a variable holds, and that is not empty where something is added. */
interface Added {
  readonly variable: string;
  /** Below a pod's spec. */
  readonly path: Path;
}

/** A policy's value of one criterion in CEL. */
export interface CompiledCriterion {
  readonly variables?: readonly Variable[];
  /** Expressions for lists of JSON Patches. Empty: no pod could get it. */
  readonly patches: readonly string[];
  readonly added?: Added;
  /** By the meaning that `unmet` gives them; none of a preference. */
  readonly checks: readonly CelCheck[];
  /** Of its most expensive expression for a LARGE pod, in the units of the API server. */
  readonly cost: number;
  readonly leftOut?: readonly LeftOut[];
}

/**
 * The pod that costs are estimated for: four required terms of four requirements each, four labels in its nodeSelector,
 * eight elements in other lists, label keys of some forty characters. Nearly all pods have less.
 */
export const LARGE = { terms: 4, requirements: 4, labels: 4, elements: 8 };

/** The least estimate: reading all requirements of that pod costs as much. */
const LEAST_COST = 4608;

export interface CompiledCriteria extends Pick<CompiledCriterion, "checks" | "cost"> {
  readonly variables: readonly Variable[];
  readonly patches: readonly string[];
  readonly leftOut: readonly LeftOut[];
}

/** The criteria of a policy, in the order of application. */
export function compileCriteria(criteria: Criteria): CompiledCriteria {
  const parts = criteria.map(({ criterion, value }) => criterion.compile(value, criteria));
  return {
    variables: usedOnce(parts.flatMap(({ variables = [] }) => variables)),
    patches: [
      ...parents(parts.flatMap(({ added }) => added ?? [])),
      ...parts.flatMap(({ patches }) => patches),
    ],
    checks: parts.flatMap(({ checks }) => checks),
    cost: Math.max(LEAST_COST, ...parts.map(({ cost }) => cost)),
    leftOut: parts.flatMap(({ leftOut = [] }) => leftOut),
  };
}

/** A text that stands for a value of the pod's namespace while criteria are compiled: in CEL it is a variable of this name. */
export const MARK = /\bfromNamespace\d+\b/;

/** A value of the pod's namespace. */
export interface NamespaceValue {
  readonly mark: string;
  /** For a message. */
  readonly text: string;
  /** In CEL; empty if there is none. */
  readonly value: string;
}

/** Criteria with marks: nothing is added or checked in a namespace without one of the values. */
export function withNamespace(
  compiled: CompiledCriteria,
  values: readonly NamespaceValue[],
): CompiledCriteria {
  if (values.length === 0) return compiled;
  const marks = new RegExp(`"(${MARK.source})"`, "g");
  const filledIn = (expression: string) => expression.replaceAll(marks, "variables.$1");
  const all = [
    ...values.map(({ mark, value }) => ({ name: mark, expression: value })),
    {
      name: "namespaceHasAll",
      expression: values.map(({ mark }) => `variables.${mark} != ""`).join(" && "),
    },
  ];
  const described = (text: string) =>
    values.reduce((result, { mark, text: shown }) => result.replaceAll(mark, shown), text);
  return {
    ...compiled,
    variables: [
      ...all,
      ...compiled.variables.map((one) => ({ ...one, expression: filledIn(one.expression) })),
    ],
    patches: [`(variables.namespaceHasAll ? ${compiled.patches.map(filledIn).join(" +\n")} : [])`],
    checks: compiled.checks.map(({ expression, variables = [], path, wants }) => ({
      expression: `!variables.namespaceHasAll || (${filledIn(expression)})`,
      variables: [...all, ...variables],
      path,
      wants: described(wants),
    })),
  };
}

/** Several criteria may read the same fields of the pod. */
export function usedOnce(variables: readonly Variable[]): Variable[] {
  return [...new Map(variables.map((one) => [one.name, one])).values()];
}

/** The objects around lists, where the pod does not have them and something is added. */
function parents(added: readonly Added[]): string[] {
  const outer = added.flatMap(({ path }) => path.slice(1).map((_, i) => path.slice(0, i + 1)));
  const paths = [...new Map(outer.map((path) => [pointer(path), path])).values()];
  return paths
    .toSorted((a, b) => a.length - b.length)
    .map((parent) => {
      const inside = added.filter(({ path }) => equal(path.slice(0, parent.length), [...parent]));
      const some = inside.map(isAdded).join(" || ");
      return `(!${fieldOf(parent)}.hasValue() && (${some}) ? [${patch("add", placeOf(parent), "{}")}] : [])`;
    });
}

/** A field of the pod as an optional: `object.spec.?affinity.?nodeAffinity`. */
export const fieldOf = (path: Path) => `object.spec${path.map((step) => `.?${step}`).join("")}`;

export const placeOf = (path: Path) => celString(pointer(["spec", ...path]));

export const patch = (op: "add" | "remove", path: string, value?: string) =>
  `JSONPatch{op: "${op}", path: ${path}${value === undefined ? "" : `, value: ${value}`}}`;

export const isAdded = ({ variable }: Added) => `variables.${variable}.size() > 0`;

export function distinct<Item extends Json>(items: readonly Item[], by: (item: Item) => Json): Item[] {
  return items.filter((item, i) => !items.slice(0, i).some((other) => equal(by(other), by(item))));
}

/** Whether a value of the pod has everything that an element has; see `extendsElement` in unmet.ts. */
export function celExtends(given: string, wanted: Json, depth = 0): string {
  if (Array.isArray(wanted))
    return wanted.map((item: Json) => `${given}.exists(x, x == ${celValue(item)})`).join(" && ") || "true";
  if (!isObject(wanted)) return `${given} == ${celValue(wanted)}`;
  const names = Object.keys(wanted).filter((name) => wanted[name] !== undefined);
  const key = `k${depth}`;
  return [
    `${given}.all(${key}, ${key} in ${celValue(names)} || type(${given}[${key}]) == list)`,
    ...names.map((name) => {
      const member = `${given}[${celString(name)}]`;
      const inner = celExtends(member, wanted[name] ?? null, depth + 1);
      return inner === "true" ? inner : `(${celString(name)} in ${given} && ${inner})`;
    }),
  ].join(" && ");
}
