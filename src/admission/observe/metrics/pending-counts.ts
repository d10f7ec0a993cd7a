/** Increments of a counter: one level for each label, by its value. */
interface Level {
  readonly inner: Map<string, Level>;
  count: number;
}

const newLevel = (): Level => ({ inner: new Map(), count: 0 });

/**
 * Increments of counters until the next scrape. Label values are the same few strings, so nested maps find them by
 * identity; a joined key would have to be built and hashed at each increment.
 */
export class PendingCounts {
  readonly #names: readonly string[];
  readonly #root = newLevel();

  /** `names` of the labels. */
  constructor(names: readonly string[]) {
    this.#names = names;
  }

  add(labels: Readonly<Record<string, string>>): void {
    let level = this.#root;
    for (const name of this.#names) {
      const value = labels[name] ?? "";
      let next = level.inner.get(value);
      if (next === undefined) {
        next = newLevel();
        level.inner.set(value, next);
      }
      level = next;
    }
    level.count++;
  }

  /** Passes on the count of each combination of labels, and starts again from zero. */
  flush(to: (labels: Record<string, string>, by: number) => void): void {
    const walk = (level: Level, labels: Record<string, string>, depth: number): void => {
      if (level.count > 0) to(labels, level.count);
      const name = this.#names[depth] ?? "";
      for (const [value, inner] of level.inner) walk(inner, { ...labels, [name]: value }, depth + 1);
    };
    walk(this.#root, {}, 0);
    this.#root.inner.clear();
    this.#root.count = 0;
  }
}
