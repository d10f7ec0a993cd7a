/** The values of a requirement. A Set is one. */
export interface Values extends Iterable<string> {
  has(value: string): boolean;
}

/**
 * Most requirements name a single value, and a policy has several of them: a Set takes over 200 bytes each, which is
 * noticeable with ten thousand policies.
 */
class OneValue implements Values {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  has(value: string): boolean {
    return value === this.#value;
  }

  *[Symbol.iterator](): Iterator<string> {
    yield this.#value;
  }
}

const NONE: ReadonlySet<string> = new Set();

export function valuesOf(list: readonly string[]): Values {
  const [first] = list;
  if (first === undefined) return NONE;
  return list.length === 1 ? new OneValue(first) : new Set(list);
}
