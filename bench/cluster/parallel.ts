// Many requests over a few connections, like a client with this many keep-alive connections.

export const CREATORS = 8;

/** Runs `work` for every number below `count`, this many at a time. */
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
