/**
 * The certificate library finds its algorithms through decorators that keep notes on classes with `Reflect.defineMetadata`,
 * which JavaScript never got. It uses three functions of it, for string keys on whole classes; these are they.
 */
interface Reflection {
  getMetadata?: (key: string, target: object) => unknown;
  getOwnMetadata?: (key: string, target: object) => unknown;
  defineMetadata?: (key: string, value: unknown, target: object) => void;
}

/** Adds what is missing to `Reflect`. What someone else put there stays. */
export function provideReflection(): void {
  const reflect = Reflect as Reflection;
  if (reflect.getMetadata !== undefined) return;
  const notes = new WeakMap<object, Map<string, unknown>>();
  reflect.getOwnMetadata = (key, target) => notes.get(target)?.get(key);
  reflect.getMetadata = (key, target) => {
    for (let here: object | null = target; here !== null; here = Object.getPrototypeOf(here)) {
      const found = notes.get(here);
      if (found?.has(key)) return found.get(key);
    }
    return undefined;
  };
  reflect.defineMetadata = (key, value, target) => {
    const own = notes.get(target) ?? new Map<string, unknown>();
    notes.set(target, own.set(key, value));
  };
}
