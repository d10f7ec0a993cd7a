import { parseInt64 } from "../../../../core/kubernetes/selectors/integer.ts";
import { meets, type Requirement } from "../../../../core/kubernetes/selectors/label-selector.ts";
import type {
  NodeNameRequirement,
  NodeTerm,
  NumericRequirement,
} from "../../../../core/kubernetes/selectors/node-selector.ts";
import { valuesOf } from "../../../../core/kubernetes/selectors/values.ts";

type LabelRequirement = Requirement | NumericRequirement;

/** The pairs of a nodeSelector; nothing where what is written there can match no node. */
export type SelectorPairs = readonly (readonly [key: string, value: string])[] | undefined;

const LARGEST = 2n ** 63n - 1n;
/** A label's value has at most so many characters. */
const VALUE_LENGTH = 63;

/**
 * Whether a node could exist that a nodeSelector and a term both match, whatever nodes there are now. Exact: keys are independent of
 * each other, so it is enough that each can have a value, or be absent, such that all that is said of it holds.
 */
export function satisfiable(term: NodeTerm, selector: SelectorPairs): boolean {
  if (term.kind !== "usable" || selector === undefined) return false;
  if (!namesAgree(term.names)) return false;
  const byKey = new Map<string, LabelRequirement[]>();
  for (const [key, value] of selector) byKey.set(key, [{ key, operator: "In", values: valuesOf([value]) }]);
  for (const requirement of term.labels) {
    const together = byKey.get(requirement.key);
    if (together === undefined) byKey.set(requirement.key, [requirement]);
    else together.push(requirement);
  }
  for (const together of byKey.values()) if (!possible(together)) return false;
  return true;
}

/** Whether one node could have a name that meets all of these. */
export function namesAgree(names: readonly NodeNameRequirement[]): boolean {
  const only = names.find(({ operator }) => operator === "In");
  // There is always one more name than those that are excluded.
  if (only === undefined) return true;
  return names.every(({ operator, name }) => (operator === "In") === (name === only.name));
}

/** Whether one label could meet all of these, which are about one key. Each of their values is looked at once. */
export function possible(requirements: readonly LabelRequirement[]): boolean {
  if (requirements.every(({ operator }) => operator === "NotIn" || operator === "DoesNotExist")) return true;
  // Present, then.
  if (requirements.some(({ operator }) => operator === "DoesNotExist")) return false;
  const [first, ...others] = requirements.filter(({ operator }) => operator === "In");
  // Any value that is not excluded: of texts there is always one more, of numbers within bounds perhaps not.
  if (first === undefined || isNumeric(first))
    return !requirements.some(isNumeric) || numberRemains(boundsOf(requirements));
  const bounds = boundsOf(requirements);
  for (const value of first.values) if (isWithin(value, bounds) && isInAll(value, others)) return true;
  return false;
}

function isNumeric(requirement: LabelRequirement): requirement is NumericRequirement {
  return "bound" in requirement;
}

/** What all requirements together exclude. */
interface Bounds {
  readonly numeric: boolean;
  readonly low: bigint;
  readonly high: bigint;
  readonly excluded: ReadonlySet<string>;
}

/** A label's value can't begin with a sign, so it is no number below zero. */
function boundsOf(requirements: readonly LabelRequirement[]): Bounds {
  let [numeric, low, high] = [false, 0n, LARGEST];
  const excluded = new Set<string>();
  for (const requirement of requirements) {
    if (!isNumeric(requirement)) {
      if (requirement.operator === "NotIn") for (const value of requirement.values) excluded.add(value);
      continue;
    }
    numeric = true;
    if (requirement.operator === "Gt") {
      if (requirement.bound >= low) low = requirement.bound + 1n;
    } else if (requirement.bound <= high) high = requirement.bound - 1n;
  }
  return { numeric, low, high, excluded };
}

function isWithin(value: string, { numeric, low, high, excluded }: Bounds): boolean {
  if (excluded.has(value)) return false;
  if (!numeric) return true;
  const number = parseInt64(value);
  return number !== undefined && number >= low && number <= high;
}

function isInAll(value: string, requirements: readonly LabelRequirement[]): boolean {
  for (const requirement of requirements)
    if (isNumeric(requirement) || !meets(requirement, value)) return false;
  return true;
}

/** With zeros in front each number has many spellings. */
function numberRemains({ low, high, excluded }: Bounds): boolean {
  // Each step uses up one excluded spelling, so there are no more steps than those.
  for (let number = low; number <= high; number++) {
    const digits = String(number);
    for (let length = digits.length; length <= VALUE_LENGTH; length++) {
      if (!excluded.has(digits.padStart(length, "0"))) return true;
    }
  }
  return false;
}
