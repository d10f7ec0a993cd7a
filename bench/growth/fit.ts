/** How well times lie on a straight line over sizes: 1 where they do, less the more they bend. */
export function straightness(sizes: readonly number[], times: readonly number[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0) / values.length;
  const [x, y] = [mean(sizes), mean(times)];
  let [xy, xx, yy] = [0, 0, 0];
  for (const [i, size] of sizes.entries()) {
    const time = times[i] ?? Number.NaN;
    xy += (size - x) * (time - y);
    xx += (size - x) ** 2;
    yy += (time - y) ** 2;
  }
  return yy === 0 ? 1 : xy ** 2 / (xx * yy);
}
