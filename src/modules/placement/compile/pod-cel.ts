/** A pod in CEL: what the compiled policies that change pods and those that check them have in common. */
import { equal, type Json, type JsonObject, own, stringAt } from "../../../core/json.ts";
import { celString } from "../../../core/kubernetes/cel.ts";
import { parseInt64 } from "../../../core/kubernetes/selectors/integer.ts";
import type { Path } from "../../../core/path.ts";
import { LISTS, REQUIRED_NODE_AFFINITY } from "../criteria/node-term.ts";

/** A variable of an admission policy: evaluated once, and only if it is used. */
export interface Variable {
  readonly [key: string]: string;
  readonly name: string;
  readonly expression: string;
}

/** A field of the pod as an optional: `object.spec.?affinity.?nodeAffinity`. */
export const fieldOf = (path: Path) => `object.spec${path.map((step) => `.?${step}`).join("")}`;

/** A policy's tolerations with the defaults of each filled in. Of two that differ in seconds alone the first counts. */
export function plainTolerations(wanted: readonly JsonObject[]): JsonObject[] {
  const plain = wanted.map((toleration) => {
    const operator = stringAt(toleration, "operator") || "Equal";
    const seconds = own(toleration, "tolerationSeconds");
    return {
      toleration,
      key: stringAt(toleration, "key") ?? "",
      operator,
      value: operator === "Exists" ? "" : (stringAt(toleration, "value") ?? ""),
      effect: stringAt(toleration, "effect") ?? "",
      seconds: typeof seconds === "number" ? [Math.max(0, seconds)] : [],
    };
  });
  return distinct(plain, ({ key, operator, value, effect }) => [key, operator, value, effect]);
}

const OPERATOR = 't.?operator.orValue("")';

/** The pod's tolerations in the same form. */
export const TOLERATIONS: Variable = {
  name: "tolerations",
  expression: `dyn(${fieldOf(["tolerations"])}.orValue([]).map(t, {${[
    '"key": dyn(t.?key.orValue(""))',
    `"operator": dyn(${OPERATOR} == "" ? "Equal" : ${OPERATOR})`,
    `"value": dyn(${OPERATOR} == "Exists" ? "" : t.?value.orValue(""))`,
    '"effect": dyn(t.?effect.orValue(""))',
    '"seconds": dyn([t.?tolerationSeconds].filter(s, s.hasValue()).map(s, s.value() < 0 ? 0 : s.value()))',
  ].join(", ")}}))`,
};

/** Whether toleration `p` tolerates all that `e` does, and as long; see `covers` in core/kubernetes/tolerations.ts. */
export const COVERS = [
  '(p.effect == "" || p.effect == e.effect)',
  '(p.key == "" || p.key == e.key)',
  '(p.operator == "Exists" || (p.operator == "Equal" && e.operator == "Equal" && p.value == e.value))',
  '(!(e.effect in ["", "NoExecute"]) || p.seconds.size() == 0 || (e.seconds.size() > 0 && p.seconds[0] >= e.seconds[0]))',
].join(" && ");

export function distinct<Item extends Json>(items: readonly Item[], by: (item: Item) => Json): Item[] {
  return items.filter((item, i) => !items.slice(0, i).some((other) => equal(by(other), by(item))));
}

export const [EXPRESSIONS, FIELDS] = LISTS;

const rebuilt = (list: string) =>
  `${list}.orValue([]).map(r, {"key": dyn(r.key), "operator": dyn(r.operator), "values": dyn(r.?values.orValue([]).map(v, v))})`;

/** The pod's required terms, each with both lists and each requirement with values. */
export const TERMS: Variable = {
  name: "terms",
  expression: `dyn(${fieldOf([...REQUIRED_NODE_AFFINITY, "nodeSelectorTerms"])}.orValue([]).map(t, {"${EXPRESSIONS}": ${rebuilt(`t.?${EXPRESSIONS}`)}, "${FIELDS}": ${rebuilt(`t.?${FIELDS}`)}}))`,
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

/** The same of a literal. */
export function admitsText(text: string): string {
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
