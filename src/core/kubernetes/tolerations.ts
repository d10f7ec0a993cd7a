import { canonical, isObject, type Json, own } from "../json.ts";
import type { Path } from "../path.ts";
import { type FieldError, quoted, typeName } from "./field-error.ts";
import { checkLabelKey, checkLabelValue } from "./names.ts";
import { isLargestInt64, isSmallestInt64, parseCanonicalInt64 } from "./selectors/integer.ts";
import { HARD_EFFECTS, TAINT_EFFECTS, type Taint } from "./taints.ts";

/** A toleration with every default filled in, so that equivalent ones are equal. */
interface PlainToleration {
  readonly key: string;
  readonly operator: string;
  readonly value: string;
  readonly effect: string;
  /** How long a NoExecute taint is tolerated; absent means forever. */
  readonly seconds: number | undefined;
}

const FIELDS: ReadonlySet<string> = new Set(["key", "operator", "value", "effect", "tolerationSeconds"]);
const OPERATORS = "must be one of Equal, Exists, Gt, Lt";

/** `undefined` if a field has the wrong type: the API server would not have accepted it either. */
function plain(toleration: Json | undefined): PlainToleration | undefined {
  if (!isObject(toleration)) return undefined;
  const key = own(toleration, "key") ?? "";
  const written = own(toleration, "operator") ?? "";
  const value = own(toleration, "value") ?? "";
  const effect = own(toleration, "effect") ?? "";
  const seconds = own(toleration, "tolerationSeconds") ?? undefined;
  if (typeof key !== "string" || typeof written !== "string") return undefined;
  if (typeof value !== "string" || typeof effect !== "string") return undefined;
  if (seconds !== undefined && typeof seconds !== "number") return undefined;
  const operator = written === "" ? "Equal" : written;
  // Exists ignores the value, and a negative time counts as zero.
  return {
    key,
    operator,
    value: operator === "Exists" ? "" : value,
    effect,
    seconds: seconds === undefined ? undefined : Math.max(0, seconds),
  };
}

/**
 * An empty key matches every key, an empty effect every effect. Gt and Lt compare the taint's value with the
 * toleration's, both as 64-bit integers in canonical form; if either is not one, the taint is not tolerated. An
 * unreadable toleration, or one with an unknown operator, tolerates nothing. An empty key with another operator than
 * Exists, which the API server refuses, is compared like any other, as the scheduler does.
 */
export function tolerates(toleration: Json | undefined, taint: Taint): boolean {
  const rule = plain(toleration);
  return rule !== undefined && plainTolerates(rule, taint);
}

function plainTolerates(rule: PlainToleration, taint: Taint): boolean {
  if (rule.effect !== "" && rule.effect !== taint.effect) return false;
  if (rule.key !== "" && rule.key !== taint.key) return false;
  const value = taint.value ?? "";
  if (rule.operator === "Exists") return true;
  if (rule.operator === "Equal") return rule.value === value;
  if (rule.operator !== "Gt" && rule.operator !== "Lt") return false;
  const bound = parseCanonicalInt64(rule.value);
  const number = parseCanonicalInt64(value);
  if (bound === undefined || number === undefined) return false;
  return rule.operator === "Gt" ? number > bound : number < bound;
}

/** Whether each taint with one of these effects is tolerated; by default the effects that keep a pod away. */
export function toleratesAll(
  tolerations: readonly Json[],
  taints: readonly Taint[],
  effects: readonly string[] = HARD_EFFECTS,
): boolean {
  return untolerated(tolerations, taints, effects).length === 0;
}

/** The taints with one of these effects that no toleration bears. */
export function untolerated(
  tolerations: readonly Json[],
  taints: readonly Taint[],
  effects: readonly string[] = HARD_EFFECTS,
): readonly Taint[] {
  const rules = tolerations.map(plain).filter((rule) => rule !== undefined);
  return taints.filter(
    (taint) => effects.includes(taint.effect) && !rules.some((rule) => plainTolerates(rule, taint)),
  );
}

/**
 * One string per meaning: absent and empty are equivalent, an absent operator is Equal. Unknown fields must be equal,
 * because their meaning is unknown.
 */
export function tolerationMeaning(toleration: Json): string {
  const rule = plain(toleration);
  if (rule === undefined || !isObject(toleration)) return `unreadable ${canonical(toleration)}`;
  const { key, operator, effect, seconds = null } = rule;
  const unknown = unknownFields(toleration).filter((field) => (toleration[field] ?? null) !== null);
  const rest = unknown.sort().map((field) => `${field} ${canonical(toleration[field])}`);
  // Every pod pays for it, so it is one call for all parts.
  return JSON.stringify([key, operator, rule.value, effect, seconds, rest]);
}

function unknownFields(toleration: Json | undefined): string[] {
  return isObject(toleration) ? Object.keys(toleration).filter((field) => !FIELDS.has(field)) : [];
}

/**
 * Whether `a` tolerates every taint that `b` tolerates, and for as long. Exact for a pair by the known fields; several
 * tolerations may together tolerate what none does alone, which is not considered.
 */
export function covers(a: Json | undefined, b: Json | undefined): boolean {
  const [wide, narrow] = [plain(a), plain(b)];
  if (narrow === undefined || bearsNothing(narrow)) return true;
  if (wide === undefined || bearsNothing(wide)) return false;
  if (wide.effect !== "" && wide.effect !== narrow.effect) return false;
  if (wide.key !== "" && wide.key !== narrow.key) return false;
  return coversTime(wide, narrow) && coversValues(wide, narrow);
}

/** Indexes tolerations by the taints that they tolerate, so that a covering one is found without comparing each. */
export class CoveringTolerations {
  /** The widest of each key, effect and sort of values. */
  readonly #widest = new Map<string, Json>();

  constructor(tolerations: readonly Json[]) {
    for (const one of tolerations) {
      const rule = plain(one);
      if (rule === undefined) continue;
      const { key, effect, operator, value } = rule;
      const place = JSON.stringify([key, effect, operator, operator === "Equal" ? value : ""]);
      const known = this.#widest.get(place);
      // If neither of two comparisons covers the other, the first counts.
      if (known === undefined || covers(one, known)) this.#widest.set(place, one);
    }
  }

  /** Whether one of them covers `narrow` alone. */
  cover(narrow: Json): boolean {
    const rule = plain(narrow);
    if (rule === undefined || this.#widest.size === 0) return false;
    const { operator, value } = rule;
    const sorts = [
      ["Exists", ""],
      ["Gt", ""],
      ["Lt", ""],
      ...(operator === "Equal" ? [["Equal", value]] : []),
    ];
    for (const key of new Set([rule.key, ""]))
      for (const effect of new Set([rule.effect, ""]))
        for (const sort of sorts) {
          const wide = this.#widest.get(JSON.stringify([key, effect, ...sort]));
          if (wide !== undefined && covers(wide, narrow)) return true;
        }
    return false;
  }
}

function bearsNothing({ operator, value }: PlainToleration): boolean {
  if (operator === "Equal" || operator === "Exists") return false;
  if (operator !== "Gt" && operator !== "Lt") return true;
  const bound = parseCanonicalInt64(value);
  return bound === undefined || (operator === "Gt" ? isLargestInt64(bound) : isSmallestInt64(bound));
}

/** Time counts for NoExecute alone. */
function coversTime(wide: PlainToleration, narrow: PlainToleration): boolean {
  if (narrow.effect !== "" && narrow.effect !== "NoExecute") return true;
  if (wide.seconds === undefined) return true;
  return narrow.seconds !== undefined && wide.seconds >= narrow.seconds;
}

function coversValues(wide: PlainToleration, narrow: PlainToleration): boolean {
  if (wide.operator === "Exists") return true;
  // A comparison tolerates more than one value, except next to the ends of the range, where this errs on the safe side.
  if (wide.operator === "Equal") return narrow.operator === "Equal" && narrow.value === wide.value;
  if (narrow.operator !== wide.operator && narrow.operator !== "Equal") return false;
  const [outer, inner] = [parseCanonicalInt64(wide.value), parseCanonicalInt64(narrow.value)];
  if (outer === undefined || inner === undefined) return false;
  if (narrow.operator === "Equal") return wide.operator === "Gt" ? inner > outer : inner < outer;
  return wide.operator === "Gt" ? inner >= outer : inner <= outer;
}

/** The API server's errors for a toleration, and fields that it would drop. */
export function checkToleration(value: Json | undefined, path: Path): FieldError[] {
  if (!isObject(value)) return [{ path, message: `a toleration must be an object, got ${typeName(value)}` }];
  const problems: FieldError[] = [];
  const problem = (field: string, message: string) => problems.push({ path: [...path, field], message });
  for (const field of Object.keys(value)) {
    const known = "it has key, operator, value, effect and tolerationSeconds";
    if (!FIELDS.has(field)) problem(field, `a toleration has no field ${quoted(field)}: ${known}`);
  }
  for (const field of ["key", "operator", "value", "effect"]) {
    const text = own(value, field) ?? "";
    if (typeof text !== "string") problem(field, `${field} must be a string, got ${typeName(text)}`);
  }
  const seconds = own(value, "tolerationSeconds") ?? 0;
  if (!Number.isInteger(seconds)) problem("tolerationSeconds", "tolerationSeconds must be a whole number");
  const rule = plain(value);
  if (rule === undefined) return problems;

  const wrongKey = rule.key === "" ? undefined : checkLabelKey(rule.key);
  if (wrongKey !== undefined) problem("key", wrongKey);
  if (rule.key === "" && rule.operator !== "Exists") {
    problem("operator", "without a key the operator must be Exists, which then bears every taint");
  }
  if (rule.seconds !== undefined && rule.effect !== "NoExecute") {
    problem("effect", "with tolerationSeconds the effect must be NoExecute");
  }
  if (rule.effect !== "" && !TAINT_EFFECTS.has(rule.effect)) {
    problem(
      "effect",
      `${quoted(rule.effect)} is not an effect: use NoSchedule, PreferNoSchedule or NoExecute`,
    );
  }
  checkOperator(rule, own(value, "value") ?? "", problem);
  return problems;
}

function checkOperator(
  { operator, value }: PlainToleration,
  written: Json,
  problem: (field: string, message: string) => void,
): void {
  if (operator === "Equal") {
    const wrong = checkLabelValue(value);
    if (wrong !== undefined) problem("value", wrong);
  } else if (operator === "Exists") {
    if (written !== "") problem("value", "the operator Exists takes no value");
  } else if (operator === "Gt" || operator === "Lt") {
    if (parseCanonicalInt64(value) !== undefined) return;
    const form = "an integer of at most 64 bits without leading zeros or a plus";
    problem("value", `the operator ${operator} needs ${form}, this is ${quoted(value)}`);
  } else {
    problem("operator", `unsupported operator ${quoted(operator)}: ${OPERATORS}`);
  }
}
