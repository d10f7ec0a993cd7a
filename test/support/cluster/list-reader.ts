// A separate process that reads lists from the server of its first argument as usher's modules do: a test bounds its
// heap.
import { Agent } from "node:http";
import { createClient } from "../../../src/cluster/client/https-client.ts";
import { CONNECTION } from "../../../src/cluster/credentials/credentials.ts";
import { createNeeds } from "../../../src/cluster/source/fetch-needs.ts";
import type { Need } from "../../../src/core/decision/need.ts";
import { TestApiServer, testDeadline } from "./api-server.ts";

const agent = new Agent(CONNECTION);
const client = createClient({
  server: process.argv[2] ?? "",
  namespace: undefined,
  access: async () => ({ agent, headers: {} }),
  renew: async () => false,
  close: () => agent.destroy(),
});
const fetch = createNeeds(client, new TestApiServer().resources);

/** The number of objects, and where the list continues: the objects themselves are released, as usher does. */
async function read(need: Need): Promise<{ readonly count: number; readonly next: string | undefined }> {
  const [fact] = await fetch([need], testDeadline());
  if (fact === undefined || !("found" in fact) || !Array.isArray(fact.found))
    return { count: 0, next: undefined };
  return { count: fact.found.length, next: fact.next };
}

/** All objects, in pages, as the drift scan reads them. */
async function scanned(): Promise<number> {
  let count = 0;
  for (let token: string | undefined; ; ) {
    const list = { resource: "things", managers: true, ...(token === undefined ? {} : { continue: token }) };
    const page = await read({ list, limit: 50, share: 1 });
    count += page.count;
    token = page.next;
    if (token === undefined) return count;
  }
}

/** As the preview of a namespace reads its pods, for several namespaces concurrently. */
async function previewed(): Promise<number[]> {
  const namespaces = Array.from({ length: 3 }, (_, i) => `n${i}`);
  const facts = namespaces.map((namespace) =>
    read({ list: { resource: "things", namespace }, limit: 20_000, share: 1 }),
  );
  return (await Promise.all(facts)).map(({ count }) => count);
}

process.stdout.write(JSON.stringify({ scanned: await scanned(), previewed: await previewed() }));
client.close();
