/**
 * JSON as it comes off the wire. Everything here is plain data made by `JSON.parse` or by the YAML reader, so
 * `__proto__` and `constructor` may be ordinary keys: read with `own`, never with a bare index on user-chosen keys.
 */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json | undefined };

/** True for a JSON object: not null, not a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value that an object holds itself under `key`; inherited properties do not exist for us. */
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

/** The list at a chain of keys; empty where there is none, as Kubernetes treats absent and empty lists alike. */
export function listAt(value: Json | undefined, ...keys: readonly (string | number)[]): readonly Json[] {
  const found = at(value, ...keys);
  return Array.isArray(found) ? found : [];
}

/** Sets an own property even where the key is `__proto__`, which plain assignment would take for the prototype. */
export function setOwn(target: Record<string, Json | undefined>, key: string, value: Json): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
  } else {
    target[key] = value;
  }
}

/** Deep equality of two JSON values; the order of keys does not count, an `undefined` member counts as absent. */
export function equal(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!equal(a[i], b[i])) return false;
    return true;
  }
  if (!isObject(a) || !isObject(b)) return false;
  let count = 0;
  for (const key of Object.keys(a)) {
    if (a[key] === undefined) continue;
    if (!Object.hasOwn(b, key) || !equal(a[key], b[key])) return false;
    count++;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) count--;
  return count === 0;
}

/** One spelling for one meaning: keys sorted by code unit, so that equal values give equal text. */
export function canonical(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value ?? null);
  const members: string[] = [];
  for (const key of Object.keys(value).sort()) {
    if (value[key] !== undefined) members.push(`${JSON.stringify(key)}:${canonical(value[key])}`);
  }
  return `{${members.join(",")}}`;
}
