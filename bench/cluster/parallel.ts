// Many requests by a few connections, as a client with so many keep-alive connections sends them.

export const CREATORS = 8;

/** Does `work` for every number below `count`, so many at a time. */
export async function inParallel(
  count: number,
  connections: number,
  work: (i: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: connections }, worker));
}
