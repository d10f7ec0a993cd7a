/**
 * Kubernetes' own kinds nest some 20 levels. An object of 1,000 can be copied, compared and written by recursion within V8's stack;
 * at 9,900 it can't, and V8 itself parses 4 million levels, for which it blocks the loop for 1.7 s.
 */
export const NESTING_LIMIT = 1_000;

/**
 * Objects, lists and what they have. Parsed, a body takes up to 24 times its text: 8 MiB of `{"40":1},` would take 200 MB of a heap
 * that has 256 MB in a container of 512 MiB. So many values take 38 MB at most. A large pod has 2,000, and an UPDATE of an object of
 * 1.5 MiB, the most that etcd stores, exceeds the limit only where its values have fewer than twelve bytes each.
 */
export const VALUES_LIMIT = 250_000;

/** The most that a value takes once it is parsed, of all shapes that were measured: `{"ab1":1,"ab2":1},` with keys of its own each. */
const PARSED_VALUE_BYTES = 150;

/** Nesting takes two bytes a level, a value two bytes as well: a shorter text can't exceed a limit. */
const UNCHECKED_BYTES = 2 * Math.min(NESTING_LIMIT, VALUES_LIMIT);

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Why a JSON text must not be parsed: what it would make is too deep or too large. The text need not be valid. */
export function structureProblem(bytes: Uint8Array): string | undefined {
  if (bytes.length < UNCHECKED_BYTES) return undefined;
  const values = valuesIn(bytes);
  if (values === TOO_DEEP) return `the body is nested deeper than ${NESTING_LIMIT} levels`;
  return values > VALUES_LIMIT ? `the body has more than ${VALUES_LIMIT} values` : undefined;
}

/** What a body takes while its request waits: what was parsed of it, at most. */
export function parsedBytes(bytes: Uint8Array): number {
  return bytes.length + Math.max(0, valuesIn(bytes)) * PARSED_VALUE_BYTES;
}

const TOO_DEEP = -1;

function valuesIn(bytes: Uint8Array): number | typeof TOO_DEEP {
  const { length } = bytes;
  let depth = 0;
  let values = 0;
  for (let i = 0; i < length; i++) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      for (i++; i < length; i++) {
        const inner = bytes[i];
        if (inner === QUOTE) break;
        if (inner === BACKSLASH) i++;
      }
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      values++;
      if (++depth > NESTING_LIMIT) return TOO_DEEP;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--;
    else if (byte === COMMA) values++;
  }
  return values;
}
