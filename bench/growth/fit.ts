/** The last time, for what a line through those before it says of the last size: 1 of a straight line, 1.8 of a square over doubling sizes. */
export function bend(sizes: readonly number[], times: readonly number[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;
  const before = times.slice(0, -1);
  const [x, y] = [mean(sizes.slice(0, -1)), mean(before)];
  let [xy, xx] = [0, 0];
  for (const [i, time] of before.entries()) {
    const distance = (sizes[i] ?? Number.NaN) - x;
    xy += distance * (time - y);
    xx += distance ** 2;
  }
  const line = y + (xy / xx) * ((sizes.at(-1) ?? Number.NaN) - x);
  // Times that do not grow lie around their mean.
  return (times.at(-1) ?? Number.NaN) / Math.max(line, ...before);
}
