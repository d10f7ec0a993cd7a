import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { get } from "../../../test/support/admission/example-cluster.ts";
import { exchange, LIMITS, request, serve, uids } from "../../../test/support/admission/raw-connections.ts";
import type { AdmissionServer } from "../admission-server.ts";

async function client({ webhookAddress: { host, port }, ca }: AdmissionServer): Promise<TLSSocket> {
  const socket = connect({ host, port, ca });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return socket;
}

/** Whether the server closes the connection within a while. */
async function closes(socket: TLSSocket): Promise<boolean> {
  const closed = new Promise<boolean>((resolve) => socket.once("close", () => resolve(true)));
  return socket.closed || Promise.race([closed, pause(300).then(() => false)]);
}

/** How many connections each limit closed. */
async function closedBy({ opsAddress }: AdmissionServer): Promise<Record<string, number>> {
  const { body } = await get(`${opsAddress.url}/metrics`);
  const series = body.matchAll(/^usher_connections_closed_total\{limit="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...series].map(([, limit, count]) => [limit, Number(count)]));
}

const ROOMY = { ...LIMITS, headersMs: 20_000, requestMs: 20_000, keepAliveMs: 20_000 };
const CLOSE = ["Connection: close"];

test("unfinished bodies above the limit close the oldest connection, and others are answered", async () => {
  const limits = { ...ROOMY, inFlightBytes: 200_000 };
  const server = await serve({ limits });
  const clients: TLSSocket[] = [];
  for (const bytes of [40_000, 60_000, 45_000]) {
    const socket = await client(server);
    socket.write(request("part", { pad: 100_000 }).slice(0, bytes));
    clients.push(socket);
  }
  expect(await Promise.all(clients.map(closes))).toEqual([false, false, false]);
  clients[2]?.write(" ".repeat(40_000));
  expect(await Promise.all(clients.map(closes))).toEqual([true, false, false]);
  expect(await closedBy(server)).toEqual({ bytes: 1, connections: 0, requests: 0 });
  const got = await exchange(server, (socket) =>
    socket.write(request("whole", { pad: 80_000, lines: CLOSE })),
  );
  expect(uids(got)).toEqual(["whole"]);
  for (const socket of clients) socket.destroy();
  await server.close();
});

test("above the limit an unused connection is closed", async () => {
  const server = await serve({ limits: { ...ROOMY, connections: 3 } });
  const spare = [await client(server), await client(server), await client(server)];
  const got = await exchange(server, (socket) => socket.write(request("fourth", { lines: CLOSE })));
  expect(uids(got)).toEqual(["fourth"]);
  expect(await Promise.all(spare.map(closes))).toEqual([true, false, false]);
  expect(await closedBy(server)).toEqual({ bytes: 0, connections: 1, requests: 0 });
  for (const socket of spare) socket.destroy();
  await server.close();
});

/** A connection that had one request and is kept. */
async function idle(server: AdmissionServer, uid: string): Promise<TLSSocket> {
  const socket = await client(server);
  socket.write(request(uid));
  await once(socket, "data");
  return socket;
}

test("above the limit the longest idle connection is closed for a new one", async () => {
  const server = await serve({ limits: { ...ROOMY, connections: 3 } });
  const kept = [await idle(server, "a"), await idle(server, "b"), await idle(server, "c")];
  // The first is in use again, so the second is idle for longest.
  kept[0]?.write(request("again"));
  await once(kept[0] as TLSSocket, "data");
  const got = await exchange(server, (socket) => socket.write(request("fourth", { lines: CLOSE })));
  expect(uids(got)).toEqual(["fourth"]);
  expect(await Promise.all(kept.map(closes))).toEqual([false, true, false]);
  for (const socket of kept) socket.destroy();
  await server.close();
});

test("connections with unfinished bodies do not lock out a new one", async () => {
  const server = await serve({ limits: { ...ROOMY, connections: 3 } });
  const slow: TLSSocket[] = [];
  for (const uid of ["a", "b", "c"]) {
    const socket = await client(server);
    socket.write(request(uid).slice(0, -10));
    slow.push(socket);
  }
  await pause(100);
  const got = await exchange(server, (socket) => socket.write(request("fourth", { lines: CLOSE })));
  expect(uids(got)).toEqual(["fourth"]);
  for (const socket of slow) socket.destroy();
  await server.close();
});

test("of many connections that arrive at once, no more than the limit stay", async () => {
  const server = await serve({ limits: { ...ROOMY, connections: 5 } });
  const clients = await Promise.allSettled(Array.from({ length: 30 }, () => client(server)));
  const open = clients.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  await pause(200);
  expect(open.filter((socket) => !socket.closed).length).toBeLessThanOrEqual(5);
  for (const socket of open) socket.destroy();
  await server.close();
});
