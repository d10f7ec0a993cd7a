/** Malformed bodies, the same ones for the same seed. For tests. */

/** A small pseudo-random generator (xorshift): repeatable, and fast enough for millions. */
export function numbers(seed: number): (below: number) => number {
  let state = seed | 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const TOKENS = [
  "null",
  "true",
  "0",
  "-1e999",
  "123456789012345678901234567890",
  '"\\ud800"',
  '"\\u0000"',
  "[]",
  "{}",
  '""',
  '{"__proto__":{"a":1}}',
  '{"constructor":{"prototype":{"a":1}}}',
  `${"[".repeat(3_000)}${"]".repeat(3_000)}`,
  `${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}`,
  `"${"x".repeat(300)}"`,
  '"admission.k8s.io/v1beta1"',
  '"UPDATE"',
  '"DELETE"',
];

const FRAGMENTS = [
  '"',
  "\\",
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "\u0000",
  '"__proto__":',
  '"uid":"",',
  "\ufeff",
  "\n",
];

/** One body, derived from a valid one or from nothing. */
export function hostileBody(valid: string, next: (below: number) => number): Buffer {
  switch (next(8)) {
    case 0:
      return randomBytes(next);
    case 1:
      return Buffer.from(valid.slice(0, next(valid.length)));
    case 2:
      return flipped(Buffer.from(valid), next);
    case 3:
      return Buffer.from(spliced(valid, pick(FRAGMENTS, next), next));
    case 4:
      return Buffer.from(repeated(valid, next));
    case 5:
      return flipped(Buffer.from(swapped(valid, next)), next);
    default:
      return Buffer.from(swapped(valid, next));
  }
}

function pick<T>(list: readonly T[], next: (below: number) => number): T {
  const item = list[next(list.length)];
  if (item === undefined) throw new Error("nothing to pick from");
  return item;
}

function randomBytes(next: (below: number) => number): Buffer {
  const bytes = Buffer.alloc(next(512));
  for (let i = 0; i < bytes.length; i++) bytes[i] = next(256);
  return bytes;
}

function flipped(bytes: Buffer, next: (below: number) => number): Buffer {
  for (let times = 1 + next(4); times > 0; times--) bytes[next(bytes.length)] = next(256);
  return bytes;
}

function spliced(text: string, fragment: string, next: (below: number) => number): string {
  const at = next(text.length);
  return text.slice(0, at) + fragment + text.slice(at + next(3));
}

/** A repeated piece of the text: mostly duplicate keys. */
function repeated(text: string, next: (below: number) => number): string {
  const at = next(text.length);
  const end = at + next(60);
  return text.slice(0, end) + text.slice(at);
}

/** One value replaced by another: valid JSON of the wrong shape. */
function swapped(text: string, next: (below: number) => number): string {
  const values = [...text.matchAll(/:("[^"]*"|null|true|false|\d+|\[\]|\{\})/g)];
  const match = values.length === 0 ? undefined : pick(values, next);
  if (match === undefined) return text;
  const start = match.index + 1;
  return text.slice(0, start) + pick(TOKENS, next) + text.slice(start + (match[1] ?? "").length);
}
