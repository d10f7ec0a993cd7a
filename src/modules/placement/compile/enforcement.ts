/**
 * The requirements of a policy as validations of new pods, by the meaning that `unmet` of each criterion gives them: a
 * stronger requirement meets a weaker one, a wider toleration a narrower one.
 */

import { isObject, type Json, type JsonObject, listAt, own, stringAt } from "../../../core/json.ts";
import { celString, celValue } from "../../../core/kubernetes/cel.ts";
import { parseInt64 } from "../../../core/kubernetes/selectors/integer.ts";
import { fieldPath, type Path } from "../../../core/path.ts";
import { type PolicyRef, policyName } from "../../../core/policy/policy-ref.ts";
import type { Criteria, Criterion } from "../criteria/criterion.ts";
import type { NodeSelector } from "../criteria/node-selector.ts";
import { isMatchable, parseTerm, REQUIRED_NODE_AFFINITY } from "../criteria/node-term.ts";
import {
  COVERS,
  couldMatch,
  EXPRESSIONS,
  FIELDS,
  fieldOf,
  plainTolerations,
  SELECTOR,
  TERMS,
  TOLERATIONS,
  type Variable,
} from "./pod-cel.ts";

export interface Enforcement {
  readonly variables: readonly Variable[];
  readonly validations: readonly JsonObject[];
}

/** Without validations if the policy only prefers. */
export function enforcementOf(ref: PolicyRef, criteria: Criteria): Enforcement {
  const checks = criteria.flatMap(({ criterion, value }) =>
    criterion.unmet === undefined ? [] : checksOf(criterion, value),
  );
  const used = [TERMS, SELECTOR, TOLERATIONS].filter(({ name }) =>
    checks.some(({ expression }) => expression.includes(`variables.${name}`)),
  );
  return {
    variables: used,
    validations: checks.map(({ expression, path, wants }) => ({
      expression,
      reason: "Forbidden",
      message: `policy ${policyName(ref)} requires ${wants} at ${fieldPath(["spec", ...path])}, which the pod does not have; remove what conflicts with it, or exempt the pod in the policy (USHER-P30)`,
    })),
  };
}

interface Check {
  readonly expression: string;
  /** Below a pod's spec. */
  readonly path: Path;
  readonly wants: string;
}

function checksOf(criterion: Criterion, value: unknown): Check[] {
  const { name, path, list } = criterion;
  if (typeof value === "string")
    return [{ expression: `${fieldOf(path)}.orValue("") == ${celString(value)}`, path, wants: value }];
  if (name === "nodeSelector") return labelChecks(value as NodeSelector);
  const wanted = value as readonly JsonObject[];
  if (name === "requiredNodeAffinity") return [termsCheck(wanted)];
  const elements =
    name === "topologySpreadConstraints"
      ? wanted.filter((one) => own(one, "whenUnsatisfiable") === "DoNotSchedule")
      : wanted;
  return elements.map((element) => ({
    expression:
      name === "tolerations"
        ? `${celValue(plainTolerations([element]))}.all(e, variables.tolerations.exists(p, ${COVERS}))`
        : `${fieldOf(list ?? path)}.orValue([]).exists(p, ${extendsElement("p", element)})`,
    path,
    wants:
      `the policy's entry ${["key", "name", "topologyKey"].map((one) => stringAt(element, one) ?? "").join("")}`.trimEnd(),
  }));
}

/** A label in the nodeSelector, or one that each required term pins. */
function labelChecks(labels: NodeSelector): Check[] {
  return labels.map(([key, value]) => {
    const [name, text] = [celString(key), celString(value)];
    const pins = `t.${EXPRESSIONS}.exists(s, s.key == ${name} && s.operator == "In" && s.values.all(v, v == ${text}))`;
    const pinned = `variables.terms.size() > 0 && variables.terms.all(t, t.${EXPRESSIONS}.size() + t.${FIELDS}.size() > 0 && (${pins} || !(${couldMatch(`t.${EXPRESSIONS}`, `t.${FIELDS}`)})))`;
    return {
      expression: `object.spec.?nodeSelector[?${name}].orValue("") == ${text} && ${name} in object.spec.?nodeSelector.orValue({}) || (${pinned})`,
      path: ["nodeSelector", key],
      wants: `${key}=${value}`,
    };
  });
}

/** Each term of the pod, or without any its nodeSelector, implies a term of the policy; see `isWithin`. */
function termsCheck(terms: readonly JsonObject[]): Check {
  const possible = terms.filter((term) => isMatchable(parseTerm(term), new Map()));
  const within = (requirements: string, names: string | undefined) =>
    possible
      .map((term) =>
        [
          ...listAt(term, EXPRESSIONS).map((one) => `(${requirements}).exists(g, ${implies(one)})`),
          ...listAt(term, FIELDS).map((one) =>
            names === undefined ? "false" : `${names}.exists(g, ${impliesName(one)})`,
          ),
        ].join(" && "),
      )
      .map((all) => `(${all})`)
      .join(" || ") || "false";
  const [mine, names] = [`t.${EXPRESSIONS}`, `t.${FIELDS}`];
  const isEmpty = `${mine}.size() + ${names}.size() == 0`;
  const inTerms = `variables.terms.all(t, ${isEmpty} || !(${couldMatch(mine, names)}) || ${within(`variables.selector + ${mine}`, names)})`;
  return {
    expression: `${fieldOf(REQUIRED_NODE_AFFINITY)}.hasValue() ? ${inTerms} : ${within("variables.selector", undefined)}`,
    path: REQUIRED_NODE_AFFINITY,
    wants: "the policy's required node affinity",
  };
}

/** Whether requirement `g` alone implies another; see core/kubernetes/selectors/node-requirements.ts. */
function implies(wanted: Json): string {
  const operator = stringAt(wanted, "operator") ?? "";
  const values = celValue([...new Set(listAt(wanted, "values"))]);
  const bound = parseInt64(stringAt(wanted, "values", 0) ?? "") ?? 0n;
  const beyond = operator === "Gt" ? ">" : "<";
  const ways: Readonly<Partial<Record<string, string>>> = {
    In: `g.operator == "In" && g.values.all(v, v in ${values})`,
    NotIn: `g.operator == "In" ? !g.values.exists(v, v in ${values}) : g.operator == "NotIn" ? ${values}.all(v, v in g.values) : g.operator == "DoesNotExist"`,
    Exists: '!(g.operator in ["NotIn", "DoesNotExist"])',
    DoesNotExist: 'g.operator == "DoesNotExist"',
  };
  const numeric = `g.operator == "${operator}" ? int(g.values[0]) ${beyond}= ${bound} : g.operator == "In" && g.values.all(v, v.matches("^0*[0-9]{1,18}$") && int(v) ${beyond} ${bound})`;
  return `g.key == ${celString(stringAt(wanted, "key") ?? "")} && (${ways[operator] ?? numeric})`;
}

function impliesName(wanted: Json): string {
  const name = celString(stringAt(wanted, "values", 0) ?? "");
  return stringAt(wanted, "operator") === "In"
    ? `g.operator == "In" && g.values[0] == ${name}`
    : `(g.operator == "In") != (g.values[0] == ${name})`;
}

/** Whether a value of the pod has everything that an element has; see `extendsElement` in criteria/unmet.ts. */
function extendsElement(given: string, wanted: Json, depth = 0): string {
  if (Array.isArray(wanted))
    return wanted.map((item: Json) => `${given}.exists(x, x == ${celValue(item)})`).join(" && ") || "true";
  if (!isObject(wanted)) return `${given} == ${celValue(wanted)}`;
  const names = Object.keys(wanted).filter((name) => wanted[name] !== undefined);
  const key = `k${depth}`;
  return [
    `${given}.all(${key}, ${key} in ${celValue(names)} || type(${given}[${key}]) == list)`,
    ...names.map((name) => {
      const member = `${given}[${celString(name)}]`;
      const inner = extendsElement(member, wanted[name] ?? null, depth + 1);
      return inner === "true" ? inner : `(${celString(name)} in ${given} && ${inner})`;
    }),
  ].join(" && ");
}
