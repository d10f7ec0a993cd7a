import { type Change, objectKey } from "../../core/view/view.ts";
import type { ReceivedObject } from "./reflector-steps.ts";

/** The objects of a resource that were delivered, to synthesise deletes after a relist. */
export class KnownObjects {
  readonly #resource: string;
  /** The number of the list in or after which each key was last seen. */
  readonly #seen = new Map<string, number>();
  #list = 0;

  constructor(resource: string) {
    this.#resource = resource;
  }

  get size(): number {
    return this.#seen.size;
  }

  put({ namespace, name, object }: ReceivedObject): Change {
    this.#seen.set(objectKey(namespace, name), this.#list);
    return { resource: this.#resource, namespace, name, object };
  }

  /** The list has the object, and does not say what it is like. */
  keep({ namespace, name }: Omit<ReceivedObject, "object">): void {
    const key = objectKey(namespace, name);
    if (this.#seen.has(key)) this.#seen.set(key, this.#list);
  }

  remove({ namespace, name }: ReceivedObject): Change {
    this.#seen.delete(objectKey(namespace, name));
    return { resource: this.#resource, namespace, name, object: undefined };
  }

  beginList(): void {
    this.#list += 1;
  }

  /** The list is complete: returns deletes for the objects that it did not contain. */
  endList(): Change[] {
    const deleted: Change[] = [];
    for (const [key, list] of this.#seen) {
      if (list === this.#list) continue;
      this.#seen.delete(key);
      // Neither a namespace nor a name has a slash.
      const slash = key.indexOf("/");
      const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)];
      deleted.push({ resource: this.#resource, namespace, name, object: undefined });
    }
    return deleted;
  }
}
