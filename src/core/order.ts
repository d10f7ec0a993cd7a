/** By code units: the same on every machine, unlike localeCompare. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A comparison of values by a text of theirs. */
export function byText<T>(textOf: (value: T) => string): (a: T, b: T) => number {
  return (a, b) => compareText(textOf(a), textOf(b));
}
