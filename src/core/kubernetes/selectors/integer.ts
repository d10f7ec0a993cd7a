const DIGITS = /^[+-]?[0-9]+$/;
const SMALLEST = -(2n ** 63n);
const LARGEST = 2n ** 63n - 1n;
/** 2^63 has 19 decimal digits. */
const LONGEST = 19;

/**
 * A 64-bit integer as the API server and the scheduler read one from a label: decimal
 * digits with an optional sign, leading zeros allowed, no spaces, no underscores, no other base. Anything else, and
 * anything out of range, is not an integer.
 */
export function parseInt64(text: string): bigint | undefined {
  if (!DIGITS.test(text)) return undefined;
  const negative = text.startsWith("-");
  const digits = text.replace(/^[+-]?0*/, "");
  // A BigInt of a very long string is slow to create, and would be out of range anyway.
  if (digits.length > LONGEST) return undefined;
  const size = BigInt(digits === "" ? "0" : digits);
  const value = negative ? -size : size;
  return value < SMALLEST || value > LARGEST ? undefined : value;
}

const CANONICAL = /^(?:0|-?[1-9][0-9]*)$/;

/**
 * A 64-bit integer in canonical form, as Kubernetes parses the values of taints and tolerations since 1.37: no plus, no
 * leading zeros, no minus zero. So two values are the same number only if they are the same string.
 */
export function parseCanonicalInt64(text: string): bigint | undefined {
  return CANONICAL.test(text) ? parseInt64(text) : undefined;
}

/** True if no 64-bit integer is greater than the bound. */
export function isLargestInt64(value: bigint): boolean {
  return value === LARGEST;
}

/** True if no 64-bit integer is less than the bound. */
export function isSmallestInt64(value: bigint): boolean {
  return value === SMALLEST;
}
