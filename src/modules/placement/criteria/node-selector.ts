import { at, isObject, type JsonObject, listAt, own, textOf } from "../../../core/json.ts";
import { celString, celValue } from "../../../core/kubernetes/cel.ts";
import { checkLabelKey, checkLabelValue } from "../../../core/kubernetes/names.ts";
import { labelMap } from "../../../core/kubernetes/schemas.ts";
import { impliedBy, type LabelRequirement } from "../../../core/kubernetes/selectors/node-requirements.ts";
import { valuesOf } from "../../../core/kubernetes/selectors/values.ts";
import { type Path, pointer, steps } from "../../../core/path.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { type CompiledCriterion, fieldOf, patch, placeOf, type Variable } from "./cel.ts";
import { injectionText, type MergeContext } from "./context.ts";
import { type Criteria, type Criterion, MUTABLE_WHILE_GATED, wantedOf } from "./criterion.ts";
import { labelKeys } from "./label-keys.ts";
import { admitsLabel, isMatchable, REQUIRED_TERMS } from "./node-term.ts";
import {
  admitsText,
  couldMatch,
  EXPRESSIONS,
  FIELDS,
  judgingCost,
  matchable,
  SELECTOR,
  TERMS,
} from "./node-term-cel.ts";
import type { Report } from "./report.ts";
import type { ComparedPod } from "./unmet.ts";
import { sizeOf } from "./work-limit.ts";

/** Label keys and values, sorted by key. */
export type NodeSelector = readonly (readonly [key: string, value: string])[];

const FIELD = "nodeSelector";

/**
 * nodeSelector
 *
 * Field:    spec.nodeSelector
 * Merge:    keys that the pod does not have are added; a key that the pod has keeps its value (USHER-P01). A key with which no term of
 *           the required node affinity could match any node is skipped (USHER-P11).
 * Holds:    narrows only (all keys must match); idempotent; order-independent except for which policy wins a conflict.
 * Update:   further keys on gated pods and suspended Jobs; mutable in templates.
 */
export const nodeSelector: Criterion<NodeSelector, NodeSelector> = {
  name: FIELD,
  rule: FIELD,
  text: FIELD,
  path: [FIELD],
  kubelet: "checks",
  mutability: MUTABLE_WHILE_GATED,
  schema: labelMap
    .nullish()
    .describe(
      "Labels that a node must have. Added to the pod's nodeSelector; a key that the pod sets keeps its value.",
    ),
  celRules: [labelKeys(FIELD)],
  parse,
  prepare: (labels) => labels,
  sizeOf: ({ length }) => sizeOf(length, 0, { labels: length }),
  merge,
  unmet: (pod, wanted, limit) => {
    const others = wanted.filter(([key, value]) => own(pod.nodeSelector, key) !== value);
    const isComparable = others.length === 0 || limit.admits((others.length * pod.requiredTerms.values) / 4);
    return others
      .filter(([key, value]) => !isComparable || !isPinned(pod, key, value))
      .map(([key, value]) => ({ path: [FIELD, key], wants: `${key}=${value}`, value }));
  },
  compile,
  firstCounts: "for nodes",
  injected: ({ set }, { podSpec, spec }) => {
    const pairs = keysIn(set, [...spec, FIELD]).flatMap((key): [string, string][] => {
      const value = at(podSpec, FIELD, key);
      return typeof value === "string" ? [[key, value]] : [];
    });
    return pairs.length === 0 ? undefined : pairs;
  },
  recorded: (pairs, spec) => ({ set: pairs.map(([key]) => pointer([...spec, FIELD, key])), added: {} }),
  outdated: (pairs, wanted = []) => {
    const now = new Map(wanted);
    const gone = pairs.filter(([key, value]) => now.get(key) !== value);
    return gone.length === 0 ? undefined : gone;
  },
  without: (present, injected) => {
    if (!isObject(present)) return present;
    const gone = new Map(injected.flat());
    const rest = Object.entries(present).filter(([key, value]) => value !== gone.get(key));
    return rest.length === 0 ? undefined : Object.fromEntries(rest);
  },
};

function parse(spec: JsonObject, problems: Problem[]): NodeSelector | undefined {
  const labels = at(spec, FIELD);
  if (labels === undefined || labels === null) return undefined;
  if (!isObject(labels)) {
    problems.push(problem(["spec", FIELD], "must be an object of label keys and values"));
    return undefined;
  }
  const pairs: (readonly [string, string])[] = [];
  // Sorted, so that the patch does not depend on how the policy was written.
  for (const key of Object.keys(labels).sort()) {
    const value = labels[key];
    const wrong =
      checkLabelKey(key) ??
      (typeof value === "string" ? checkLabelValue(value) : "the value of a label must be a string");
    if (wrong !== undefined) problems.push(problem(["spec", FIELD, key], wrong));
    else if (typeof value === "string") pairs.push([key, value]);
  }
  return pairs.length === 0 ? undefined : pairs;
}

function merge(target: MergeContext, wanted: NodeSelector, report: Report): void {
  const { draft, spec, holders } = target;
  for (const [key, value] of wanted) {
    const path = [...spec, FIELD, key];
    const present = draft.get(...path);
    const text = `${FIELD} ${key}=${value}`;
    const holder = `${FIELD}/${key}`;
    if (present === value) report.same(path, text);
    else if (present !== undefined && present !== null)
      report.conflict(path, "USHER-P01", {
        field: `${FIELD} ${key}`,
        holder,
        has: textOf(present),
        wants: value,
      });
    else if (report.immutable(path)) return;
    else if (contradicts(target, key, value)) {
      const terms = `the required node affinity of ${report.holderOf("requiredNodeAffinity")}`;
      report.contradiction(path, `${text} of ${report.policy}: no node can match it and ${terms}`);
    } else {
      const was = target.removed.has(injectionText(path, value));
      if (draft.set(path, value, report.applied(path, text, was))) holders.set(holder, report.request.ref);
      else report.unwritable(path, `${FIELD} is not an object here`);
    }
  }
}

/** The labels that policies want together: of several values for one key the first counts. */
export function labelsOf(all: readonly Criteria[]): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (const criteria of all)
    for (const [key, value] of wantedOf(criteria, nodeSelector) ?? [])
      if (!labels.has(key)) labels.set(key, value);
  return labels;
}

/** Whether a further key leaves no term that any node could match, if there was one before. */
function contradicts({ draft, spec, terms: parsed }: MergeContext, key: string, value: string): boolean {
  // Most pods have no affinity at all.
  if (draft.get(...spec, "affinity") === undefined) return false;
  const podSpec = draft.get(...spec);
  const list = listAt(podSpec, ...REQUIRED_TERMS);
  // Reported when the policy's own terms are merged; labels are not skipped for it.
  if (list.length === 0 || typeof parsed.sizeOf(list) === "string") return false;
  const terms = list.map((term) => parsed.of(term));
  // A label that no term names changes nothing for any.
  if (!terms.some(({ meaning }) => meaning?.labels.has(key))) return false;
  const selector = parsed.selector(podSpec);
  let lost = false;
  for (const term of terms) {
    const stays = admitsLabel(term, key, value);
    // One term that could be met and is lost is enough.
    if ((!stays && lost) || !isMatchable(term, selector)) continue;
    if (stays) return false;
    lost = true;
  }
  return lost;
}

/** Whether each of a pod's required terms requires a label to have this value. */
function isPinned({ requiredTerms: { terms } }: ComparedPod, key: string, value: string): boolean {
  if (terms === undefined || terms === "too large" || terms.length === 0) return false;
  const pinned: LabelRequirement = { key, operator: "In", values: valuesOf([value]) };
  return terms.every(
    ({ requirements, meaning }) =>
      // An empty term is left to the author of the pod; another one without a meaning matches no node.
      requirements.size > 0 && (meaning === undefined || impliedBy(meaning.labels.get(key) ?? [], pinned)),
  );
}

function compile(labels: NodeSelector): CompiledCriterion {
  const last = `variables.${selectorAfter(labels)}`;
  return {
    variables: [TERMS, SELECTOR, ...labels.flatMap((_, i) => selectorVariables(labels.slice(0, i + 1)))],
    patches: [
      `(!${fieldOf([FIELD])}.hasValue() && ${last}.size() > 0 ? [${patch("add", placeOf([FIELD]), "{}")}] : [])`,
      `${last}.filter(s, !variables.selector.exists(o, o.key == s.key)).map(s, ${patch("add", `"/spec/${FIELD}/" + jsonpatch.escapeKey(s.key)`, "s.values[0]")})`,
    ],
    checks: labels.map(([key, value]) => {
      const [name, text] = [celString(key), celString(value)];
      const pins = `t.${EXPRESSIONS}.exists(s, s.key == ${name} && s.operator == "In" && s.values.all(v, v == ${text}))`;
      const pinned = `variables.terms.size() > 0 && variables.terms.all(t, t.${EXPRESSIONS}.size() + t.${FIELDS}.size() > 0 && (${pins} || !(${couldMatch(`t.${EXPRESSIONS}`, `t.${FIELDS}`)})))`;
      return {
        expression: `${fieldOf([FIELD])}[?${name}].orValue("") == ${text} && ${name} in ${fieldOf([FIELD])}.orValue({}) || (${pinned})`,
        variables: [TERMS],
        path: [FIELD, key],
        wants: `${key}=${value}`,
      };
    }),
    cost: judgingCost(labels.length, 0, 0),
  };
}

/** The variable of the pod's nodeSelector with these labels. */
export function selectorAfter({ length }: NodeSelector): string {
  return length === 0 ? SELECTOR.name : `${SELECTOR.name}${length}`;
}

/** The nodeSelector with a further label, the last: not where the pod has the key, nor where no term would be left. */
function selectorVariables(labels: NodeSelector): Variable[] {
  const [key, value] = labels.at(-1) ?? ["", ""];
  const [name, before] = [selectorAfter(labels), selectorAfter(labels.slice(1))];
  const text = celString(key);
  const left = `${name}Terms`;
  const isNamed = `variables.terms.exists(t, t.${EXPRESSIONS}.exists(s, s.key == ${text}))`;
  const contradicting = `variables.${left}.size() > 0 && !variables.${left}.exists(t, t.${EXPRESSIONS}.all(s, s.key != ${text} || ${admitsText(value)}))`;
  const further = celValue([{ key, operator: "In", values: [value] }]);
  return [
    // A label that no term names changes nothing for any.
    {
      name: left,
      expression: `dyn(${isNamed} ? variables.terms.filter(t, ${matchable("t", before)}) : dyn([]))`,
    },
    {
      name,
      expression: `dyn(variables.${before}.exists(s, s.key == ${text}) || (${contradicting}) ? variables.${before} : variables.${before} + ${further})`,
    },
  ];
}

/** The keys below a map that paths name. A deeper path is not a label. */
function keysIn(places: readonly string[], map: Path): string[] {
  const prefix = `${pointer(map)}/`;
  return places.flatMap((place) => {
    if (!place.startsWith(prefix)) return [];
    const [key = "", ...deeper] = steps(place).slice(map.length).map(String);
    return deeper.length > 0 ? [] : [key];
  });
}
