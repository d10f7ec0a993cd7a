import { type AddressInfo, createServer } from "node:net";

function listen(): Promise<{ port: number; close: () => Promise<void> }> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      resolve({ port, close: () => new Promise((done) => server.close(() => done())) });
    });
  });
}

/** Ports of the loopback interface that were free a moment ago. Bound together and then released, so that no two are the same. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const held = await Promise.all(Array.from({ length: count }, listen));
  await Promise.all(held.map(({ close }) => close()));
  return held.map(({ port }) => port);
}
