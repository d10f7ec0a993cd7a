/** Where the steps of a counter are gathered: a shelf for each label's value, in the order of the labels. */
interface Shelf {
  readonly inner: Map<string, Shelf>;
  by: number;
}

const newShelf = (): Shelf => ({ inner: new Map(), by: 0 });

/**
 * PendingCounts of counters, gathered until someone looks. Label values are the same few texts again and again, so a map of maps
 * finds them by identity; a joined key would have to be built and hashed anew at each step.
 */
export class PendingCounts {
  readonly #names: readonly string[];
  readonly #root = newShelf();

  /** `names` of the labels. */
  constructor(names: readonly string[]) {
    this.#names = names;
  }

  take(labels: Readonly<Record<string, string>>): void {
    let shelf = this.#root;
    for (const name of this.#names) {
      const value = labels[name] ?? "";
      let next = shelf.inner.get(value);
      if (next === undefined) {
        next = newShelf();
        shelf.inner.set(value, next);
      }
      shelf = next;
    }
    shelf.by++;
  }

  /** Gives each combination of labels with how often it came, and starts again from nothing. */
  give(to: (labels: Record<string, string>, by: number) => void): void {
    const walk = (shelf: Shelf, labels: Record<string, string>, depth: number): void => {
      if (shelf.by > 0) to(labels, shelf.by);
      const name = this.#names[depth] ?? "";
      for (const [value, inner] of shelf.inner) walk(inner, { ...labels, [name]: value }, depth + 1);
    };
    walk(this.#root, {}, 0);
    this.#root.inner.clear();
    this.#root.by = 0;
  }
}
