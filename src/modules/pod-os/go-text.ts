/** Text in Go's format. Lone surrogates do not survive Go's JSON decoder: each becomes U+FFFD. */

const NAMED: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

/**
 * Characters that Go prints unescaped: letters, marks, numbers, punctuation, symbols and the ASCII space. Characters
 * newer than the Unicode version of an API server's Go are escaped there and not here.
 */
const ESCAPED = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** `%q`. */
export function goQuote(text: string): string {
  return `"${text.toWellFormed().replace(ESCAPED, escaped)}"`;
}

function escaped(character: string): string {
  const named = NAMED[character];
  if (named !== undefined) return named;
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x80) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x1_00_00 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/** `json.Marshal`, which escapes characters with a meaning in HTML and JavaScript. */
export function goJson(text: string): string {
  return JSON.stringify(text.toWellFormed()).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Go sorts by the bytes of UTF-8, which is the order of code points; JavaScript by code units, which differs beyond U+FFFF. */
export function byCodePoint(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** Surrogates represent code points above all others. */
function rank(unit: number): number {
  return unit >= 0xd8_00 && unit <= 0xdf_ff ? unit + 0x1_00_00 : unit;
}

/**
 * The maximum number of listed elements: each takes two quotes, a comma and a space, so they fill a denial, which ends
 * at 8,192 characters. Without a bound, messages about tens of thousands of elements cost more than all checks of the
 * pod.
 */
export const MOST_LISTED = 2_048;

/** A set in Go's format: sorted, each once. Of more than `MOST_LISTED` values only the first. */
export function sortedSet(values: Iterable<string>): string[] {
  const found = new Set<string>();
  for (const value of values) {
    if (found.size === MOST_LISTED) break;
    found.add(value);
  }
  return [...found].sort(byCodePoint);
}

/** Quotes around each, nothing inside escaped. */
export function joinQuote(items: readonly string[]): string {
  return items.length === 0 ? "" : `"${items.join('", "')}"`;
}

export function plural(one: string, many: string, count: number): string {
  return count === 1 ? one : many;
}
