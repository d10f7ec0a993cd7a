import { setTimeout as pause } from "node:timers/promises";

export interface TurnsOptions {
  /** How many are under way at once. */
  readonly parallel: number;
  /** After each, before its place is taken by the next. */
  readonly pauseMs: number;
  readonly progress: (done: number) => void;
}

/** Works on items in their order, a bounded number at a time; results in the same order. */
export async function inTurns<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
  { parallel, pauseMs, progress }: TurnsOptions,
): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  let done = 0;
  const turn = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) {
      const item = items[i];
      if (item === undefined) continue;
      results[i] = await work(item);
      progress(++done);
      if (pauseMs > 0 && next < items.length) await pause(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: parallel }, turn));
  return results;
}
