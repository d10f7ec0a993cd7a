import { type Change, objectKey } from "../../core/view/view.ts";
import type { Arrival } from "./reflector-steps.ts";

/** Which objects of a resource have been told of: what a new list does not have any more must be told to be gone. */
export class KnownObjects {
  readonly #resource: string;
  /** By key, the list in or after which it was last seen. */
  readonly #seen = new Map<string, number>();
  #list = 0;

  constructor(resource: string) {
    this.#resource = resource;
  }

  get size(): number {
    return this.#seen.size;
  }

  put({ namespace, name, object }: Arrival): Change {
    this.#seen.set(objectKey(namespace, name), this.#list);
    return { resource: this.#resource, namespace, name, object };
  }

  remove({ namespace, name }: Arrival): Change {
    this.#seen.delete(objectKey(namespace, name));
    return { resource: this.#resource, namespace, name, object: undefined };
  }

  beginList(): void {
    this.#list += 1;
  }

  /** The list is whole: what was not in it is gone. */
  endList(): Change[] {
    const gone: Change[] = [];
    for (const [key, list] of this.#seen) {
      if (list === this.#list) continue;
      this.#seen.delete(key);
      // Neither a namespace nor a name has a slash.
      const slash = key.indexOf("/");
      const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)];
      gone.push({ resource: this.#resource, namespace, name, object: undefined });
    }
    return gone;
  }
}
