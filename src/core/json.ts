/**
 * JSON from the wire. Everything here is plain data from `JSON.parse` or the YAML reader, so `__proto__` and
 * `constructor` may be ordinary keys: read with `own`, never with a plain index on user-chosen keys.
 */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json | undefined };

/** True for a JSON object: not null, not a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The own value of an object under `key`; inherited properties are ignored. */
export function own(value: Json | undefined, key: string): Json | undefined {
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** The value at a chain of keys, `undefined` as soon as one is missing. */
export function at(value: Json | undefined, ...keys: readonly (string | number)[]): Json | undefined {
  let here = value;
  for (const key of keys) {
    if (Array.isArray(here)) here = typeof key === "number" ? here[key] : undefined;
    else here = own(here, String(key));
    if (here === undefined) return undefined;
  }
  return here;
}

export function stringAt(value: Json | undefined, ...keys: readonly (string | number)[]): string | undefined {
  const found = at(value, ...keys);
  return typeof found === "string" ? found : undefined;
}

/** The list at a chain of keys; empty if absent, because Kubernetes treats absent and empty lists alike. */
export function listAt(value: Json | undefined, ...keys: readonly (string | number)[]): readonly Json[] {
  const found = at(value, ...keys);
  return Array.isArray(found) ? found : [];
}

/** A value in a sentence. Never `String(value)`: of an object with a member `toString` that throws. */
export function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Sets an own property even if the key is `__proto__`, which plain assignment would treat as the prototype. */
export function setOwn(target: Record<string, Json | undefined>, key: string, value: Json): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[key] = value;
  }
}

/** Deep equality of two JSON values; the order of keys does not count, an `undefined` member counts as absent. */
export function equal(a: Json | undefined, b: Json | undefined): boolean {
  // A work list, not recursion: a request may be nested 10,000 deep, beyond the stack's limit.
  const pending = [a, b];
  while (pending.length > 0) {
    const right = pending.pop();
    const left = pending.pop();
    if (left === right) continue;
    if (Array.isArray(left)) {
      if (!Array.isArray(right) || left.length !== right.length) return false;
      for (let i = 0; i < left.length; i++) if (!maybeSame(left[i], right[i], pending)) return false;
    } else if (!isObject(left) || !isObject(right) || !sameMembers(left, right, pending)) return false;
  }
  return true;
}

/** Whether two objects have the same keys. Their values are queued for comparison. */
function sameMembers(a: JsonObject, b: JsonObject, pending: (Json | undefined)[]): boolean {
  const [keys, others] = [Object.keys(a), Object.keys(b)];
  // Two versions of one object nearly always have their keys in one order, which saves looking for each.
  let same = 0;
  for (; same < keys.length && keys[same] === others[same]; same++) {
    const key = keys[same] as string;
    if (!maybeSame(a[key], b[key], pending)) return false;
  }
  let count = 0;
  for (let i = same; i < keys.length; i++) {
    const key = keys[i] as string;
    if (a[key] === undefined) continue;
    if (!Object.hasOwn(b, key) || !maybeSame(a[key], b[key], pending)) return false;
    count++;
  }
  for (let i = same; i < others.length; i++) if (b[others[i] as string] !== undefined) count--;
  return count === 0;
}

/** False if two values differ at the top; nested values are added to the work list. */
function maybeSame(a: Json | undefined, b: Json | undefined, pending: (Json | undefined)[]): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object") return false;
  pending.push(a, b);
  return true;
}

/** A deep copy. */
export function copyOf(value: Json): Json {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isObject(value)) return value;
  // A spread keeps the shape, and copies `__proto__` as an own member; assigning to an existing member is safe.
  const copy: Record<string, Json | undefined> = { ...value };
  for (const key of Object.keys(copy)) {
    const member = copy[key];
    if (member === undefined) copy[key] = null;
    else if (typeof member === "object" && member !== null) copy[key] = copyOf(member);
  }
  return copy;
}

/** One spelling per meaning: keys sorted by code unit, so that equal values give equal text. */
export function canonical(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value ?? null);
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    if (value[key] !== undefined) members.push(`${JSON.stringify(key)}:${canonical(value[key])}`);
  }
  return `{${members.join(",")}}`;
}

/** Keys that are counted as known: objects of Kubernetes have some hundred. */
const MOST_KEYS = 1_000;

/**
 * The estimated memory of a parsed value, by constants of V8. A key is expensive the first time: V8 keeps the string,
 * and a shape of the object. Measured, ordinary objects take two thirds of the estimate, and deliberately large ones
 * all of it; only many objects with ever different sets of the same few keys take twice as much. @param known The keys
 * that were seen before.
 */
export function memoryOf(value: Json | undefined, known: Set<string>): number {
  let bytes = 0;
  // A work list, not recursion: a stored object may be nested deeper than the stack.
  const pending = [value];
  while (pending.length > 0) {
    const here = pending.pop();
    if (typeof here === "string") bytes += 24 + here.length;
    else if (typeof here !== "object" || here === null) bytes += 8;
    else if (Array.isArray(here)) {
      bytes += 32 + 8 * here.length;
      for (let i = 0; i < here.length; i++) pending.push(here[i]);
    } else {
      const object = here as JsonObject;
      bytes += 56;
      for (const key in object) {
        bytes += known.has(key) ? 16 : 100 + key.length;
        if (known.size < MOST_KEYS) known.add(key);
        pending.push(object[key]);
      }
    }
  }
  return bytes;
}

export const TOO_DEEP = Number.NEGATIVE_INFINITY;

/** Whether a value has at most this number of values and levels, itself included. Stops counting there. */
export function holdsAtMost(
  value: Json | undefined,
  values: number,
  depth = Number.POSITIVE_INFINITY,
): boolean {
  return valuesLeft(value, values, depth) >= 0;
}

/** `room` minus the number of values in a value; negative if there are more, TOO_DEEP if it is nested too deeply. */
export function valuesLeft(value: Json | undefined, room: number, depth: number): number {
  let left = room - 1;
  if (typeof value !== "object" || value === null || left < 0) return left;
  if (depth <= 0) return TOO_DEEP;
  if (Array.isArray(value)) {
    if (value.length > left) return -1;
    for (let i = 0; i < value.length && left >= 0; i++) left = valuesLeft(value[i], left, depth - 1);
    return left;
  }
  const object = value as JsonObject;
  for (const key in object) {
    left = valuesLeft(object[key], left, depth - 1);
    if (left < 0) return left;
  }
  return left;
}
