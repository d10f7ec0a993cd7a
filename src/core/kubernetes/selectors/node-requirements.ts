import { parseInt64 } from "./integer.ts";
import { meets, type Requirement } from "./label-selector.ts";
import type { NodeNameRequirement, NumericRequirement } from "./node-selector.ts";

/** A requirement on a label of a node. */
export type LabelRequirement = Requirement | NumericRequirement;

const LARGEST = 2n ** 63n - 1n;
/** The longest value of a label. */
const VALUE_LENGTH = 63;

/** Whether one of these requirements alone implies another. Requirements that imply it only together count as no. */
export function impliedBy(given: readonly LabelRequirement[], wanted: LabelRequirement): boolean {
  for (const one of given) if (one.key === wanted.key && implies(one, wanted)) return true;
  return false;
}

/** Whether every label value, or its absence, that meets `given` meets `wanted`, which is about the same key. */
function implies(given: LabelRequirement, wanted: LabelRequirement): boolean {
  if (isNumeric(wanted)) return impliesBound(given, wanted);
  if (isNumeric(given)) return wanted.operator === "Exists";
  switch (wanted.operator) {
    case "In":
      return given.operator === "In" && every(given.values, (value) => wanted.values.has(value));
    case "NotIn":
      if (given.operator === "In") return every(given.values, (value) => !wanted.values.has(value));
      if (given.operator === "NotIn") return every(wanted.values, (value) => given.values.has(value));
      return given.operator === "DoesNotExist";
    case "Exists":
      return given.operator === "In" || given.operator === "Exists";
    case "DoesNotExist":
      return given.operator === "DoesNotExist";
  }
}

function impliesBound(given: LabelRequirement, { operator, bound }: NumericRequirement): boolean {
  const isBeyond = (value: bigint) => (operator === "Gt" ? value > bound : value < bound);
  if (isNumeric(given))
    return given.operator === operator && (given.bound === bound || isBeyond(given.bound));
  return (
    given.operator === "In" &&
    every(given.values, (value) => {
      const number = parseInt64(value);
      return number !== undefined && isBeyond(number);
    })
  );
}

/** Whether the name of every node that meets `given` meets `wanted`. */
export function impliesName(given: NodeNameRequirement, wanted: NodeNameRequirement): boolean {
  if (given.operator === "In") return (wanted.operator === "In") === (given.name === wanted.name);
  return wanted.operator === "NotIn" && given.name === wanted.name;
}

/** Whether one node could have a name that meets all of these. */
export function namesAgree(names: readonly NodeNameRequirement[]): boolean {
  const only = names.find(({ operator }) => operator === "In");
  // There is always another name than the excluded ones.
  if (only === undefined) return true;
  return names.every(({ operator, name }) => (operator === "In") === (name === only.name));
}

/**
 * Whether one label could meet all of these requirements, which are about one key, whatever nodes there are now. Exact. Labels are
 * independent of each other, so a term can match a node if this holds for each of its keys. Each value is looked at once.
 */
export function isSatisfiable(requirements: readonly LabelRequirement[]): boolean {
  if (requirements.every(({ operator }) => operator === "NotIn" || operator === "DoesNotExist")) return true;
  // The others need the label to be present.
  if (requirements.some(({ operator }) => operator === "DoesNotExist")) return false;
  const [first, ...others] = requirements.filter(({ operator }) => operator === "In");
  // Any value that is not excluded: there is always another string, but perhaps no other number within bounds.
  if (first === undefined || isNumeric(first))
    return !requirements.some(isNumeric) || numberRemains(boundsOf(requirements));
  const bounds = boundsOf(requirements);
  for (const value of first.values) if (isWithin(value, bounds) && isInAll(value, others)) return true;
  return false;
}

function isNumeric(requirement: LabelRequirement): requirement is NumericRequirement {
  return "bound" in requirement;
}

/** The values that requirements exclude together. */
interface Bounds {
  readonly numeric: boolean;
  readonly low: bigint;
  readonly high: bigint;
  readonly excluded: ReadonlySet<string>;
}

/** A label's value can't begin with a sign, so no number is below zero. */
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
  // Each step uses up one excluded spelling, so the steps are at most as many as those.
  for (let number = low; number <= high; number++) {
    const digits = String(number);
    for (let length = digits.length; length <= VALUE_LENGTH; length++) {
      if (!excluded.has(digits.padStart(length, "0"))) return true;
    }
  }
  return false;
}

function every(values: Iterable<string>, holds: (value: string) => boolean): boolean {
  for (const value of values) if (!holds(value)) return false;
  return true;
}
