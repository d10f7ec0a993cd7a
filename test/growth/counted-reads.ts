import { isObject, type JsonObject } from "../../src/core/json.ts";

/** Counts reads of objects, independent of a module's own counts. */
export class CountedReads {
  reads = 0;
  readonly #known = new WeakMap<object, object>();

  /** The same object; each access to a member or to its keys is counted. */
  of(object: JsonObject): JsonObject {
    const counted = this.#counted(object);
    if (!isObject(counted)) throw new Error("a counted object stays an object");
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
    // A value read from a counted object and written back stays as it is.
    this.#known.set(counted, counted);
    return counted;
  }
}
