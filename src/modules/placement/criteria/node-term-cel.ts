/** A pod's requirements on its node in CEL: nodeSelector and required node affinity are judged together. */
import { celString } from "../../../core/kubernetes/cel.ts";
import { parseInt64 } from "../../../core/kubernetes/selectors/integer.ts";
import { LISTS } from "../../../core/kubernetes/selectors/node-terms.ts";
import { fieldOf, LARGE, MARK, type Variable } from "./cel.ts";
import { REQUIRED_TERMS } from "./node-term.ts";

export const [EXPRESSIONS, FIELDS] = LISTS;

const rebuilt = (list: string) =>
  `${list}.orValue([]).map(r, {"key": dyn(r.key), "operator": dyn(r.operator), "values": dyn(r.?values.orValue([]).map(v, v))})`;

/** The pod's required terms, each with both lists and each requirement with values. */
export const TERMS: Variable = {
  name: "terms",
  expression: `dyn(${fieldOf(REQUIRED_TERMS)}.orValue([]).map(t, {"${EXPRESSIONS}": ${rebuilt(`t.?${EXPRESSIONS}`)}, "${FIELDS}": ${rebuilt(`t.?${FIELDS}`)}}))`,
};

/** The pod's nodeSelector, as requirements. */
export const SELECTOR: Variable = {
  name: "selector",
  expression:
    'dyn(object.spec.?nodeSelector.orValue({}).map(k, {"key": dyn(k), "operator": dyn("In"), "values": dyn([object.spec.nodeSelector[k]])}))',
};

/** Whether requirement `s` admits a label's value; see core/kubernetes/selectors/node-requirements.ts. */
const admits = (value: string, number: string) =>
  `(s.operator == "In" ? ${value} in s.values : s.operator == "NotIn" ? !(${value} in s.values) : s.operator in ["Exists", "DoesNotExist"] ? s.operator == "Exists" : ${number})`;

/** The same of a value that is known only when a pod is created. No label has a sign; numbers of 19 digits count as none. */
const ADMITS_ANY = admits(
  "v",
  'v.matches("^0*[0-9]{1,18}$") && (s.operator == "Gt" ? int(v) > int(s.values[0]) : int(v) < int(s.values[0]))',
);

/** The same of a literal, or of a mark. */
export function admitsText(text: string): string {
  if (MARK.test(text)) return `[${celString(text)}].exists(v, ${ADMITS_ANY})`;
  const number = parseInt64(text);
  return admits(
    celString(text),
    number === undefined
      ? "false"
      : `(s.operator == "Gt" ? ${number} > int(s.values[0]) : ${number} < int(s.values[0]))`,
  );
}

/** Whether one node could meet these requirements. */
export const couldMatch = (requirements: string, names: string) =>
  `[${requirements}].exists(l, l.all(r, ${[
    `r.operator == "In" ? r.values.exists(v, l.all(s, s.key != r.key || ${ADMITS_ANY}))`,
    'r.operator == "DoesNotExist" ? l.all(s, s.key != r.key || s.operator in ["DoesNotExist", "NotIn"])',
    'r.operator == "Gt" ? int(r.values[0]) < 9223372036854775807 && l.all(s, s.key != r.key || s.operator != "Lt" || int(r.values[0]) + 1 < int(s.values[0]))',
    'r.operator != "Lt" || int(r.values[0]) > 0',
  ].join(
    " : ",
  )})) && ${names}.all(r, r.operator != "In" || ${names}.all(s, (s.operator == "In") == (s.values[0] == r.values[0])))`;

/** Whether any node could match a term beside a nodeSelector. An empty term matches none. */
export const matchable = (term: string, selector: string) =>
  `(${term}.${EXPRESSIONS}.size() + ${term}.${FIELDS}.size() > 0 && ${couldMatch(`${term}.${EXPRESSIONS} + variables.${selector}`, `${term}.${FIELDS}`)})`;

/**
 * The cost of judging each combination: each of its requirements beside each other one. The API server counts while it evaluates, and has
 * no estimate before. The factors here are upper bounds of the costs that its own library counts for policies of 1 to 64 terms and 1 to 16
 * requirements: at most half as much again.
 */
export function judgingCost(labels: number, terms: number, requirements: number): number {
  const compared = LARGE.requirements + requirements + LARGE.labels + labels;
  return 18 * LARGE.terms * (terms + 1) * compared ** 2;
}
