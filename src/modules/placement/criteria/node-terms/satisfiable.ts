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

/** Whether one label could meet all of these, which are about one key. */
export function possible(requirements: readonly LabelRequirement[]): boolean {
  if (requirements.every(({ operator }) => operator === "NotIn" || operator === "DoesNotExist")) return true;
  // Present, then.
  if (requirements.some(({ operator }) => operator === "DoesNotExist")) return false;
  for (const requirement of requirements) {
    if (requirement.operator !== "In") continue;
    for (const value of requirement.values) if (meetsAll(requirements, value)) return true;
    return false;
  }
  // Any value that is not excluded: of texts there is always one more, of numbers within bounds perhaps not.
  return !requirements.some(isNumeric) || numberRemains(requirements);
}

function isNumeric(requirement: LabelRequirement): requirement is NumericRequirement {
  return "bound" in requirement;
}

function meetsAll(requirements: readonly LabelRequirement[], value: string): boolean {
  return requirements.every((requirement) => {
    if (!isNumeric(requirement)) return meets(requirement, value);
    const number = parseInt64(value);
    if (number === undefined) return false;
    return requirement.operator === "Gt" ? number > requirement.bound : number < requirement.bound;
  });
}

/** A label's value can't begin with a sign, so it is no number below zero; with zeros in front each number has many spellings. */
function numberRemains(requirements: readonly LabelRequirement[]): boolean {
  let [low, high] = [0n, LARGEST];
  const excluded = new Set<string>();
  for (const requirement of requirements) {
    if (!isNumeric(requirement)) {
      if (requirement.operator === "NotIn") for (const value of requirement.values) excluded.add(value);
    } else if (requirement.operator === "Gt") {
      if (requirement.bound >= low) low = requirement.bound + 1n;
    } else if (requirement.bound <= high) high = requirement.bound - 1n;
  }
  // Each step uses up one excluded spelling, so there are no more steps than those.
  for (let number = low; number <= high; number++) {
    const digits = String(number);
    for (let length = digits.length; length <= VALUE_LENGTH; length++) {
      if (!excluded.has(digits.padStart(length, "0"))) return true;
    }
  }
  return false;
}
