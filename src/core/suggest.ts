/** The nearest of the known words, if one is near enough to be a typo. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  // A long word would need a quadratic table for nothing: no known word is that long.
  if (word.length > 64) return undefined;
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const found = distance(word.toLowerCase(), candidate.toLowerCase());
    if (found < bestDistance) {
      best = candidate;
      bestDistance = found;
    }
  }
  return best;
}

/** `did you mean "Exists"?`, or nothing. */
export function didYouMean(word: string, known: readonly string[]): string | undefined {
  const found = nearest(word, known);
  return found === undefined ? undefined : `did you mean "${found}"?`;
}

/** Edits between two words: insert, delete, replace, and swap of neighbours, each counted as one. */
function distance(a: string, b: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min((row[j - 1] ?? 0) + 1, (previous[j] ?? 0) + 1, (previous[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    before = previous;
    previous = row;
  }
  return previous[b.length] ?? 0;
}
