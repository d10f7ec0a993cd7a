// Usher's own durations of reviews, from the histogram of its metrics.

/** Counts by upper bound in seconds, cumulative, of all phases and pages together. */
export type Buckets = ReadonlyMap<number, number>;

const LINE = /^usher_request_duration_seconds_bucket\{le="([^"]+)",phase="[^"]+"\} (\d+)$/gm;

export function bucketsOf(pages: readonly string[]): Buckets {
  const found = new Map<number, number>();
  for (const page of pages)
    for (const [, bound = "", count] of page.matchAll(LINE)) {
      const le = bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
      found.set(le, (found.get(le) ?? 0) + Number(count));
    }
  return found;
}

/** Between two scrapes, as Prometheus estimates it: evenly within a bucket. In seconds. */
export function quantileBetween(before: Buckets, after: Buckets, share: number): number {
  const bounds = [...after.keys()].filter(Number.isFinite).sort((a, b) => a - b);
  const counted = (bound: number) => (after.get(bound) ?? 0) - (before.get(bound) ?? 0);
  const place = share * counted(Number.POSITIVE_INFINITY);
  let [lower, below] = [0, 0];
  for (const bound of bounds) {
    const count = counted(bound);
    if (count >= place && count > below) return lower + (bound - lower) * ((place - below) / (count - below));
    [lower, below] = [bound, count];
  }
  return lower;
}
