/**
 * The last time relative to the value of a line through those before it: 1 for linear growth, 1.8 for quadratic growth
 * over doubling sizes. Sizes before the quickest are dropped: below some limit more is read than beyond it, and no line
 * fits both.
 */
export function bend(sizes: readonly number[], times: readonly number[]): number {
  const last = times.length - 1;
  const first = times.indexOf(Math.min(...times.slice(0, last)));
  const points = times.slice(first, last).map((time, i) => ({ size: sizes[first + i] ?? Number.NaN, time }));
  // Times that do not grow lie around their mean.
  const highest = Math.max(...points.map(({ time }) => time));
  return (times[last] ?? Number.NaN) / Math.max(highest, lineAt(sizes[last] ?? Number.NaN, points));
}

/** The least-squares line's value for a size. With one point it goes through the origin. */
function lineAt(size: number, points: readonly { readonly size: number; readonly time: number }[]): number {
  const [one] = points;
  if (one !== undefined && points.length === 1) return (one.time / one.size) * size;
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map((point) => point.size)), mean(points.map(({ time }) => time))];
  let [xy, xx] = [0, 0];
  for (const point of points) {
    xy += (point.size - x) * (point.time - y);
    xx += (point.size - x) ** 2;
  }
  return y + (xy / xx) * (size - x);
}
