import { type Json, type JsonObject, listAt, own, stringAt } from "../../../../core/json.ts";
import { parseInt64 } from "../../../../core/kubernetes/selectors/integer.ts";
import type { WorkBudget } from "../../merge/work-budget.ts";

const NODE_NAME = "metadata.name";

/** A requirement on a node as it is written, with its values at hand. */
interface Written {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly Json[];
}

/**
 * Whether a pod with this nodeSelector and these required terms (`undefined`: it requires none) runs on no node but such as one of
 * `wanted` allows. Empty terms allow none: where all are, only a pod that runs nowhere is within them. It says yes only where that is certain; a pod that gets there by several requirements together may be told no, and so
 * may one that is too large to be looked at.
 */
export function impliesTerms(
  nodeSelector: JsonObject,
  terms: readonly Json[] | undefined,
  wanted: readonly JsonObject[],
  budget: WorkBudget,
): boolean {
  const requirements = wanted.map((_, i) => readAt(wanted, i)).filter(({ size }) => size > 0);
  const within = ({ byLabel, byField }: ReadTerm) =>
    requirements.some(
      ({ labels, fields }) =>
        labels.every((one) => selects(nodeSelector, one, budget) || impliedBy(byLabel, one, budget)) &&
        fields.every((one) => impliedBy(byField, one, budget)),
    );
  if (terms === undefined) return within(NO_TERM);
  return terms.every((_, i) => {
    const term = readAt(terms, i);
    // An empty term matches no node, so a pod gets nowhere by it.
    return term.size === 0 || within(term);
  });
}

/** Whether each of a pod's required terms pins a label to one value. */
export function pinsLabel(
  terms: readonly Json[] | undefined,
  key: string,
  value: string,
  budget: WorkBudget,
): boolean {
  if (terms === undefined || terms.length === 0) return false;
  const pinned: Written = { key, operator: "In", values: [value] };
  return terms.every((_, i) => impliedBy(readAt(terms, i).byLabel, pinned, budget));
}

/** Whether the pod's nodeSelector says it. */
function selects(nodeSelector: JsonObject, wanted: Written, budget: WorkBudget): boolean {
  const value = own(nodeSelector, wanted.key);
  if (value === undefined) return false;
  const given: Written = { key: wanted.key, operator: "In", values: [value] };
  return budget.spend(3 + wanted.values.length) && implies(given, wanted);
}

/** Whether one of these says it; no where that is not known. */
function impliedBy(known: ByKey, wanted: Written, budget: WorkBudget): boolean {
  if (!budget.spend(2)) return false;
  return (known.get(wanted.key) ?? []).some(
    (other) => budget.spend(2 + other.values.length + wanted.values.length) && implies(other, wanted),
  );
}

/** Requirements by what they are about. */
type ByKey = ReadonlyMap<string, readonly Written[]>;

interface ReadTerm {
  readonly labels: readonly Written[];
  readonly fields: readonly Written[];
  readonly byLabel: ByKey;
  readonly byField: ByKey;
  /** How many requirements it has. */
  readonly size: number;
}

const NOTHING: ByKey = new Map();
const NO_TERM: ReadTerm = { labels: [], fields: [], byLabel: NOTHING, byField: NOTHING, size: 0 };

/** By list of terms, which is replaced whole and never edited: each policy asks for it. Dropping it changes no result. */
const readTerms = new WeakMap<readonly Json[], (ReadTerm | undefined)[]>();

/** One term of a list, read when it is asked for: of many the first mostly decides. */
function readAt(terms: readonly Json[], i: number): ReadTerm {
  const known = readTerms.get(terms) ?? [];
  readTerms.set(terms, known);
  known[i] ??= readTerm(terms[i] ?? null);
  return known[i];
}

function readTerm(term: Json): ReadTerm {
  const [labels, fields] = [readAll(term, "matchExpressions"), readAll(term, "matchFields")];
  const byKey = (list: readonly Written[]) =>
    list.length === 0 ? NOTHING : Map.groupBy(list, ({ key }) => key);
  return {
    labels,
    fields,
    byLabel: byKey(labels),
    byField: byKey(fields),
    size: labels.length + fields.length,
  };
}

function readAll(term: Json, list: string): Written[] {
  return listAt(term, list).map((one) => ({
    key: stringAt(one, "key") ?? "",
    operator: stringAt(one, "operator") ?? "",
    values: listAt(one, "values"),
  }));
}

/** Whether every node that meets `given` meets `wanted`. */
function implies(given: Written, wanted: Written): boolean {
  if (given.key !== wanted.key) return false;
  const within = (some: Written, all: Written) => {
    const values = new Set(all.values);
    return some.values.every((value) => values.has(value));
  };
  switch (wanted.operator) {
    case "In":
      return given.operator === "In" && within(given, wanted);
    case "NotIn":
      if (given.operator === "NotIn") return within(wanted, given);
      if (given.operator === "In") return !meet(given, wanted);
      return given.operator === "DoesNotExist";
    case "Exists":
      // A field is always there; of labels, all but these two say that it is.
      return wanted.key === NODE_NAME || !["NotIn", "DoesNotExist"].includes(given.operator);
    case "DoesNotExist":
      return given.operator === "DoesNotExist";
    case "Gt":
    case "Lt":
      return bounded(given, wanted);
    default:
      return false;
  }
}

function meet(a: Written, b: Written): boolean {
  const values = new Set(b.values);
  return a.values.some((value) => values.has(value));
}

function bounded(given: Written, wanted: Written): boolean {
  const bound = numberOf(wanted.values[0]);
  if (bound === undefined) return false;
  const beyond = (value: bigint) => (wanted.operator === "Gt" ? value > bound : value < bound);
  if (given.operator === "In")
    return given.values.every((value) => {
      const number = numberOf(value);
      return number !== undefined && beyond(number);
    });
  if (given.operator !== wanted.operator) return false;
  const own = numberOf(given.values[0]);
  return own !== undefined && (own === bound || beyond(own));
}

function numberOf(value: Json | undefined): bigint | undefined {
  return typeof value === "string" ? parseInt64(value) : undefined;
}
