import { isObject, type JsonObject } from "../../src/core/json.ts";

/** Counts what is read of objects, whatever a module itself counts. */
export class CountedReads {
  reads = 0;
  readonly #known = new WeakMap<object, object>();

  /** The same object; each look at a member of it, or at its keys, is counted. */
  of(object: JsonObject): JsonObject {
    const counted = this.#counted(object);
    if (!isObject(counted)) throw new Error("an object stays one");
    return counted;
  }

  #counted(value: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    const counted = new Proxy(value, {
      get: (target, key, receiver) => {
        this.reads++;
        return this.#counted(Reflect.get(target, key, receiver));
      },
      ownKeys: (target) => {
        const keys = Reflect.ownKeys(target);
        this.reads += keys.length;
        return keys;
      },
    });
    this.#known.set(value, counted);
    // What was read from a counted object and is put back into it stays as it is.
    this.#known.set(counted, counted);
    return counted;
  }
}
