/**
 * Kubernetes' own kinds nest some 20 levels. An object of 1,000 can be copied, compared and written by recursion within
 * V8's stack; at 9,900 it can't, and V8 itself parses 4 million levels, which blocks the loop for 1.7 s.
 */
export const NESTING_LIMIT = 1_000;

/**
 * The maximum memory of large reviews once parsed: those that wait and the one being parsed. Of a heap of 256 MB, in a
 * container of 512 MiB, code and a large view take up to 90, other requests that wait for facts 48, and the text of the
 * review 42 if it is not ASCII. A node with 70,000 labels and their managedFields takes 54 in an UPDATE, by the
 * estimate below, and a pod with 250,000 host names 12.
 */
export const PARSED_LIMIT = 64 * 1024 * 1024;

/** A review that takes more is large. All others count among the bytes in flight while they wait, six of the largest at least. */
export const LARGE_REVIEW = 8 * 1024 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;
const LETTER_U = 0x75;

/**
 * The bytes that V8 allocates for each byte of a text, at least as many as measured for any shape: `{}` takes 56 and
 * its place in a list 10. A key takes most if an object has few of them and no other object has the same
 * (`{"16":1,"33":1}`). A number beyond 31 bits takes an object of 16 bytes for three characters. `structure.test.ts`
 * measures the shapes again.
 */
const WEIGHTS = new Uint8Array(256).fill(6);
WEIGHTS.fill(0, 0, SPACE + 1);
WEIGHTS[QUOTE] = 20;
WEIGHTS[COMMA] = 10;
WEIGHTS[COLON] = 108;
WEIGHTS[OPEN_LIST] = 58;
WEIGHTS[OPEN_OBJECT] = 72;
WEIGHTS[CLOSE_LIST] = 0;
WEIGHTS[CLOSE_OBJECT] = 0;

/** One character beyond Latin-1 makes all of a string take two bytes each. */
const CHARACTER_BYTES = 2;

/** The maximum memory of a JSON text once parsed; infinite if it is nested too deeply. The text need not be valid. */
export function parsedBytes(bytes: Uint8Array): number {
  const { length } = bytes;
  let depth = 0;
  let parsed = 0;
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] as number;
    parsed += WEIGHTS[byte] as number;
    if (byte === QUOTE) {
      for (i++; i < length && bytes[i] !== QUOTE; i++) {
        parsed += CHARACTER_BYTES;
        if (bytes[i] === BACKSLASH) i += bytes[i + 1] === LETTER_U ? 5 : 1;
      }
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      if (++depth > NESTING_LIMIT) return Number.POSITIVE_INFINITY;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--;
  }
  return parsed;
}

/**
 * Why a JSON text that takes this memory must not be parsed: it is too deep or too large, or other large ones that wait
 * leave no memory.
 */
export function structureProblem(parsed: number, room = PARSED_LIMIT): string | undefined {
  if (parsed === Number.POSITIVE_INFINITY) return `the body is nested deeper than ${NESTING_LIMIT} levels`;
  if (parsed > PARSED_LIMIT) return `the body takes more than ${PARSED_LIMIT} bytes of memory`;
  return parsed > Math.max(room, LARGE_REVIEW)
    ? "other large requests take the memory that is kept for them"
    : undefined;
}

const OBJECT_KEY = Buffer.from('"object":');

/**
 * The part of a review before its object, as a complete review. Go's encoder writes uid, kind, resource, name,
 * namespace, operation and userInfo before it, without spaces. For any other text the result is not JSON, or lacks
 * required fields.
 */
export function envelopeOf(bytes: Buffer): Buffer | undefined {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      if (
        depth === 2 &&
        bytes[i - 1] === COMMA &&
        bytes.subarray(i, i + OBJECT_KEY.length).equals(OBJECT_KEY)
      )
        return Buffer.concat([bytes.subarray(0, i - 1), Buffer.from("}}")]);
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--;
  }
  return undefined;
}
