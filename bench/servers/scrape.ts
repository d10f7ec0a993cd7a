// Reads figures of usher's own /metrics.
import type { Child } from "./child-process.ts";

const WITHIN_MS = 10_000;

/** The text of the page. Reading it also starts a new period for metrics "since the last scrape". */
export async function scrape({ ready }: Child): Promise<string> {
  const response = await fetch(`${ready.ops}/metrics`, { signal: AbortSignal.timeout(WITHIN_MS) });
  return response.text();
}

/** One series, written as on the page: `name{label="value"}`. */
export function seriesOf(page: string, series: string): number {
  const line = page.split("\n").find((one) => one.startsWith(`${series} `));
  if (line === undefined) throw new Error(`usher's /metrics has no ${series}`);
  return Number(line.slice(series.length + 1));
}
