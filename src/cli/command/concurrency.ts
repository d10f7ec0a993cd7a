import { setTimeout as pause } from "node:timers/promises";

export interface ConcurrencyOptions {
  /** How many run at once. */
  readonly parallel: number;
  /** After each item, before the next one. */
  readonly pauseMs: number;
  readonly progress: (done: number) => void;
}

/** Processes items in order, a bounded number at a time; results are in the same order. */
export async function mapConcurrently<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
  { parallel, pauseMs, progress }: ConcurrencyOptions,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  let done = 0;
  const worker = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) {
      const item = items[i];
      if (item === undefined) continue;
      results[i] = await work(item);
      progress(++done);
      if (pauseMs > 0 && next < items.length) await pause(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return results;
}
