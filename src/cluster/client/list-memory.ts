import type { ListCut } from "../../core/evaluate/source.ts";
import { type JsonObject, memoryOf } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";

/**
 * The memory of all lists together while they are read: a sixth of a heap of 256 MiB, as much as parsing one page may
 * take. An ordinary pod is estimated at 13 KB, so 3,000 fit, the number that Pod Security checks.
 */
const LISTS_BYTES = 40 * 1024 * 1024;

/** The memory of all lists of a process, and counts of objects that did not fit. */
export class ListMemory {
  readonly #log: Log;
  readonly #cuts = new Map<string, ListCut>();
  #held = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  get full(): boolean {
    return this.#held >= LISTS_BYTES;
  }

  /** The share of one list, until it is released. */
  hold(): { readonly add: (item: JsonObject) => void; readonly release: () => void } {
    let own = 0;
    const keys = new Set<string>();
    return {
      add: (item) => {
        const bytes = memoryOf(item, keys);
        own += bytes;
        this.#held += bytes;
      },
      release: () => {
        this.#held -= own;
        own = 0;
      },
    };
  }

  /** A list ended early. Its reader reports it, or continues from there. */
  endedEarly(resource: string): void {
    this.#count(resource, "list");
  }

  leftOut(
    resource: string,
    { namespace, name }: { readonly namespace: string; readonly name: string },
  ): void {
    this.#count(resource, "object");
    this.#log.warn({ resource, namespace, name }, "object is too large to be read, it is left out of a list");
  }

  get cuts(): readonly ListCut[] {
    return [...this.#cuts.values()];
  }

  #count(resource: string, what: ListCut["what"]): void {
    const key = `${what} ${resource}`;
    this.#cuts.set(key, { resource, what, count: (this.#cuts.get(key)?.count ?? 0) + 1 });
  }
}
