// Quantities of Kubernetes, exact: `500m`, `1.5Gi`, `1e3`, or a plain number. Stored as a count of billionths, the
// finest unit of Kubernetes.
import type { Json } from "../json.ts";

const QUANTITY = /^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([eE])([+-]?[0-9]{1,9})|([numkKMGTPE]?i?))$/;
/** Longer than any meaningful quantity; bounds the cost of the pattern and the BigInt. */
const LONGEST = 128;
const NANO = 10n ** 9n;
/** Kubernetes caps parsed values at the largest 64-bit integer. */
const LARGEST = (2n ** 63n - 1n) * NANO;
/** 10^19 is beyond the cap, 10^-9 below the finest count: larger exponents change nothing. */
const MOST_EXPONENT = 64 + LONGEST;

/** Factors in billionths. */
const SUFFIXES: ReadonlyMap<string, bigint> = new Map([
  ["n", 1n],
  ["u", 10n ** 3n],
  ["m", 10n ** 6n],
  ["", NANO],
  ["k", 10n ** 12n],
  ["M", 10n ** 15n],
  ["G", 10n ** 18n],
  ["T", 10n ** 21n],
  ["P", 10n ** 24n],
  ["E", 10n ** 27n],
  ["Ki", NANO << 10n],
  ["Mi", NANO << 20n],
  ["Gi", NANO << 30n],
  ["Ti", NANO << 40n],
  ["Pi", NANO << 50n],
  ["Ei", NANO << 60n],
]);

/** In billionths, rounded away from zero; `undefined` if it is not a quantity. */
export function parseQuantity(value: Json | undefined): bigint | undefined {
  if (typeof value === "number") return parseText(String(value));
  return typeof value === "string" ? parseText(value) : undefined;
}

function parseText(text: string): bigint | undefined {
  if (text.length > LONGEST) return undefined;
  const found = QUANTITY.exec(text);
  if (found === null) return undefined;
  const [, sign, whole = "", fraction = "", exponential, exponent = "0", suffix = ""] = found;
  if (whole === "" && fraction === "") return undefined;
  const factor = SUFFIXES.get(suffix);
  if (factor === undefined) return undefined;
  const digits = BigInt(`${whole}${fraction}`);
  const tens = (exponential === undefined ? 0 : Number(exponent)) - fraction.length;
  const size = scale(digits * factor, Math.max(-MOST_EXPONENT, Math.min(MOST_EXPONENT, tens)));
  const capped = size > LARGEST ? LARGEST : size;
  return sign === "-" ? -capped : capped;
}

/** Rounds up. */
function scale(value: bigint, tens: number): bigint {
  if (tens >= 0) return value * 10n ** BigInt(tens);
  return ceiling(value, 10n ** BigInt(-tens));
}

/** Rounds non-negative values up, and negative ones away from zero. */
function ceiling(value: bigint, unit: bigint): bigint {
  const quotient = value / unit;
  if (quotient * unit === value) return quotient;
  return value < 0n ? quotient - 1n : quotient + 1n;
}

/** The integer number of units, rounded up; `undefined` beyond JavaScript's exact integers. */
export function wholeUnits(nanos: bigint, unit: bigint): number | undefined {
  const count = Number(ceiling(nanos, unit));
  return Number.isSafeInteger(count) ? count : undefined;
}

/** Billionths in a thousandth, as CPU is counted. */
export const MILLI = 10n ** 6n;
/** Billionths in one, as bytes are counted. */
export const ONE = NANO;
