/**
 * The mutation of a compiled policy: one JSON Patch, because the fields are atomic and an ApplyConfiguration can't extend
 * them.
 *
 * It never copies a value of the pod into the patch: the API server of 1.37 can't write a value back that a match
 * condition has read before. Requirements are rebuilt from their texts instead.
 */
import { equal, type JsonObject, listAt, own } from "../../../core/json.ts";
import { celString, celValue } from "../../../core/kubernetes/cel.ts";
import { MAX_REQUIRED_TERMS } from "../../../core/kubernetes/schemas/bounds.ts";
import { type Path, pointer } from "../../../core/path.ts";
import { type Criteria, type Criterion, wantedOf } from "../criteria/criterion.ts";
import { nodeSelector } from "../criteria/node-selector.ts";
import { isMatchable, LISTS, parseTerm, REQUIRED_NODE_AFFINITY } from "../criteria/node-term.ts";
import { requiredNodeAffinity } from "../criteria/required-node-affinity.ts";
import {
  admitsText,
  COVERS,
  couldMatch,
  distinct,
  EXPRESSIONS,
  FIELDS,
  fieldOf,
  matchable,
  plainTolerations,
  SELECTOR,
  TERMS,
  TOLERATIONS,
  type Variable,
} from "./pod-cel.ts";

/** One expression in parts: each is a list of JSON Patches. */
export interface Mutation {
  readonly variables: readonly Variable[];
  readonly patches: readonly string[];
}

export function mutationOf(criteria: Criteria): Mutation {
  const nodes = nodePart(criteria);
  const lists = criteria.flatMap(({ criterion, value }) =>
    criterion.list === undefined || criterion.name === requiredNodeAffinity.name
      ? []
      : [listPart(criterion, value as readonly JsonObject[])],
  );
  const names = criteria.flatMap(({ criterion, value }) =>
    typeof value === "string" ? [namePart(criterion, value)] : [],
  );
  const parts = [nodes, ...lists];
  return {
    variables: parts.flatMap(({ variables }) => variables),
    patches: [
      ...affinityParents(parts.flatMap(({ added }) => added)),
      ...parts.flatMap(({ patches }) => patches),
      ...names,
    ],
  };
}

/** A list of elements that a variable holds, and that is not empty where something is added. */
interface Added {
  readonly variable: string;
  /** Below a pod's spec. */
  readonly path: Path;
}

interface Part extends Mutation {
  readonly added: readonly Added[];
}

const patch = (op: "add" | "remove", path: string, value?: string) =>
  `JSONPatch{op: "${op}", path: ${path}${value === undefined ? "" : `, value: ${value}`}}`;

const placeOf = (path: Path) => celString(pointer(["spec", ...path]));

const isAdded = ({ variable }: Added) => `variables.${variable}.size() > 0`;

/** The objects around lists of affinity, where the pod does not have them and something is added. */
function affinityParents(added: readonly Added[]): string[] {
  const inside = added.filter(({ path }) => path[0] === "affinity");
  const parents = [...new Map(inside.map(({ path }) => [String(path[1]), path.slice(0, 2)])).values()];
  return [...(inside.length === 0 ? [] : [["affinity"]]), ...parents].map((parent) => {
    const children = inside.filter(({ path }) => equal(path.slice(0, parent.length), [...parent]));
    const some = children.map(isAdded).join(" || ");
    return `(!${fieldOf(parent)}.hasValue() && (${some}) ? [${patch("add", placeOf(parent), "{}")}] : [])`;
  });
}

/** When an element `p` of the pod excludes one `e` of the policy, by the name of the criterion. @default when they are equal */
export const EXCLUDING: Readonly<Partial<Record<string, string>>> = {
  topologySpreadConstraints: "p.topologyKey == e.topologyKey && p.whenUnsatisfiable == e.whenUnsatisfiable",
  schedulingGates: "p.name == e.name",
};

/** Tolerations that differ in seconds alone. */
const SAME_KEY = "p.key == e.key && p.operator == e.operator && p.value == e.value && p.effect == e.effect";

/** A list to which the policy's elements are added, each by itself. */
function listPart(criterion: Criterion, wanted: readonly JsonObject[]): Part {
  const { name, list = [] } = criterion;
  const present = `${fieldOf(list)}.orValue([])`;
  const added = { variable: `${name}ToAdd`, path: list };
  const variables =
    name === "tolerations"
      ? [
          TOLERATIONS,
          {
            name: added.variable,
            expression: `dyn(${celValue(plainTolerations(wanted))}.filter(e, !variables.tolerations.exists(p, (${SAME_KEY}) || (${COVERS}))))`,
          },
        ]
      : [
          {
            name: added.variable,
            expression: `dyn(${celValue(distinct(wanted, (one) => one))}.filter(e, !${present}.exists(p, ${EXCLUDING[name] ?? "p == e"})))`,
          },
        ];
  return {
    added: [added],
    variables,
    patches: [
      `(!${fieldOf(list)}.hasValue() && ${isAdded(added)} ? [${patch("add", placeOf(list), "[]")}] : [])`,
      `variables.${added.variable}.map(e, ${patch("add", placeOf([...list, "-"]), name === "tolerations" ? "e.toleration" : "e")})`,
    ],
  };
}

/** The API server writes `default-scheduler` into each pod that names none. */
export const UNSET: Readonly<Partial<Record<string, string>>> = { schedulerName: '"default-scheduler"' };

function namePart({ name, derived = [] }: Criterion, wanted: string): string {
  const unset = ['""', UNSET[name] ?? []].flat().join(", ");
  const isUnset = `${fieldOf([name])}.orValue("") in [${unset}]`;
  const isFree = name === "nodeName" ? ` && ${fieldOf(["schedulingGates"])}.orValue([]).size() == 0` : "";
  const set = patch("add", placeOf([name]), celString(wanted));
  const removed = derived.map(
    (field) => ` + (${fieldOf([field])}.hasValue() ? [${patch("remove", placeOf([field]))}] : [])`,
  );
  return `(${isUnset}${isFree} ? [${set}]${removed.join("")} : [])`;
}

/** nodeSelector and required node affinity: both are judged by whether any node could still match. */
function nodePart(criteria: Criteria): Part {
  const labels = wantedOf(criteria, nodeSelector) ?? [];
  const terms = (wantedOf(criteria, requiredNodeAffinity) ?? []).filter((term) =>
    isMatchable(parseTerm(term), new Map()),
  );
  if (labels.length === 0 && terms.length === 0) return { added: [], variables: [], patches: [] };
  const selectors = labels.map((_, i) => `selector${i + 1}`);
  const last = selectors.at(-1) ?? "selector";
  const added = { variable: "requiredTerms", path: [...REQUIRED_NODE_AFFINITY] };
  return {
    added: terms.length === 0 ? [] : [added],
    variables: [
      TERMS,
      SELECTOR,
      ...labels.flatMap(([key, value], i) =>
        selectorVariables(selectors[i - 1] ?? "selector", selectors[i] ?? "", key, value),
      ),
      ...(terms.length === 0 ? [] : termVariables(terms, last)),
    ],
    patches: [
      ...(labels.length === 0
        ? []
        : [
            `(!${fieldOf(["nodeSelector"])}.hasValue() && variables.${last}.size() > 0 ? [${patch("add", '"/spec/nodeSelector"', "{}")}] : [])`,
            `variables.${last}.filter(s, !variables.selector.exists(o, o.key == s.key)).map(s, ${patch("add", '"/spec/nodeSelector/" + jsonpatch.escapeKey(s.key)', "s.values[0]")})`,
          ]),
      ...(terms.length === 0
        ? []
        : [
            `(${isAdded(added)} ? [${patch("add", placeOf(REQUIRED_NODE_AFFINITY), '{"nodeSelectorTerms": variables.requiredTerms}')}] : [])`,
          ]),
    ],
  };
}

/** The nodeSelector with a further label: not where the pod has the key, nor where no term would be left. */
function selectorVariables(before: string, name: string, key: string, value: string): Variable[] {
  const text = celString(key);
  const left = `${name}Terms`;
  const isNamed = `variables.terms.exists(t, t.${EXPRESSIONS}.exists(s, s.key == ${text}))`;
  const contradicts = `variables.${left}.size() > 0 && !variables.${left}.exists(t, t.${EXPRESSIONS}.all(s, s.key != ${text} || ${admitsText(value)}))`;
  const further = celValue([{ key, operator: "In", values: [value] }]);
  return [
    // A label that no term names changes nothing for any.
    {
      name: left,
      expression: `dyn(${isNamed} ? variables.terms.filter(t, ${matchable("t", before)}) : dyn([]))`,
    },
    {
      name,
      expression: `dyn(variables.${before}.exists(s, s.key == ${text}) || (${contradicts}) ? variables.${before} : variables.${before} + ${further})`,
    },
  ];
}

const SAME = "r.key == s.key && r.operator == s.operator && sets.equivalent(r.values, s.values)";

/** Whether one term has all requirements of another. */
const hasAll = (term: string, other: string) =>
  LISTS.map((list) => `${other}.${list}.all(r, ${term}.${list}.exists(s, ${SAME}))`).join(" && ");

/** Each term of the pod with each of the policy; see `productOf` in criteria/required-node-affinity.ts. */
function termVariables(terms: readonly JsonObject[], selector: string): Variable[] {
  const wanted = terms.map((term) =>
    Object.fromEntries(
      LISTS.map((list) => [
        list,
        listAt(term, list).map((one) => ({
          key: own(one, "key") ?? "",
          operator: own(one, "operator") ?? "",
          values: listAt(one, "values"),
        })),
      ]),
    ),
  );
  const both = LISTS.map(
    (list) => `"${list}": dyn(m.${list} + w.${list}.filter(r, !m.${list}.exists(s, ${SAME})))`,
  );
  const kept = LISTS.map((list) => `"${list}": dyn(m.${list})`);
  const combine = `variables.wanted.map(w, dyn({${both.join(", ")}, "kept": dyn(false)})).filter(c, ${couldMatch(`c.${EXPRESSIONS} + variables.${selector}`, `c.${FIELDS}`)})`;
  const met = `variables.wanted.exists(w, ${hasAll("m", "w")})`;
  const changed =
    "(variables.product.size() != variables.terms.size() || variables.product.exists(c, !c.kept))";
  const someRemain = `variables.product.exists(c, !c.kept || ${matchable("c", selector)})`;
  const repeated = `variables.product.exists(j, d, j < i && ${hasAll("c", "d")} && ${hasAll("d", "c")})`;
  const written = `{"${EXPRESSIONS}": c.${EXPRESSIONS}, "${FIELDS}": c.${FIELDS}}`;
  return [
    { name: "wanted", expression: `dyn(${celValue(wanted)})` },
    {
      name: "product",
      expression: `dyn(variables.terms.map(m, ${matchable("m", selector)} && !${met} ? dyn(${combine}) : dyn([{${kept.join(", ")}, "kept": dyn(true)}])).flatten())`,
    },
    {
      name: "requiredTerms",
      expression: `dyn(!${fieldOf(REQUIRED_NODE_AFFINITY)}.hasValue() ? variables.wanted.filter(c, ${couldMatch(`c.${EXPRESSIONS} + variables.${selector}`, `c.${FIELDS}`)}) : ${changed} && ${someRemain} && variables.product.size() <= ${MAX_REQUIRED_TERMS} ? dyn(variables.product.transformList(i, c, c.kept || !${repeated}, ${written})) : dyn([]))`,
    },
  ];
}

/**
 * The pod that costs are estimated for: four required terms of four requirements each, four labels in its nodeSelector,
 * eight tolerations, label keys of some forty characters. Nearly all pods have less.
 */
const REFERENCE = { terms: 4, requirements: 4, labels: 4, tolerations: 8 };

/**
 * The cost of the most expensive expression for the reference pod, in the units of the API server, which counts while it
 * evaluates and has no estimate before. The factors are upper bounds of the costs that its own library counts for
 * policies of 1 to 64 terms and 1 to 16 requirements: at most half as much again.
 */
export function costOf(criteria: Criteria): number {
  const labels = REFERENCE.labels + (wantedOf(criteria, nodeSelector)?.length ?? 0);
  const terms = wantedOf(criteria, requiredNodeAffinity) ?? [];
  const wanted = Math.max(
    0,
    ...terms.map((term) => LISTS.reduce((sum, list) => sum + listAt(term, list).length, 0)),
  );
  const compared = REFERENCE.requirements + wanted + labels;
  const product = REFERENCE.terms * terms.length;
  return Math.max(
    // Each combination is judged: each of its requirements beside each other one.
    18 * REFERENCE.terms * (terms.length + 1) * compared ** 2,
    // Equal ones are found by comparing each with each; more are not written.
    product > MAX_REQUIRED_TERMS ? 0 : (80 + 6 * wanted) * product ** 2,
    ...criteria.map(({ criterion, value }) =>
      criterion.name === requiredNodeAffinity.name || !Array.isArray(value)
        ? 0
        : 21 * value.length * REFERENCE.tolerations,
    ),
  );
}
