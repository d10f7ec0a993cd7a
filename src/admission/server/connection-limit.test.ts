import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { exchange, LIMITS, request, serve, uids } from "../../../test/support/admission/raw-connections.ts";
import type { AdmissionServer } from "./admission-server.ts";

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

const ROOMY = { ...LIMITS, headersMs: 20_000, requestMs: 20_000, keepAliveMs: 20_000 };
const CLOSE = ["Connection: close"];

test("unfinished bodies above the limit end the oldest connection, and others are answered", async () => {
  const limits = { ...ROOMY, unfinishedBytes: 150_000 };
  const server = await serve({ limits });
  const clients: TLSSocket[] = [];
  for (const bytes of [40_000, 60_000, 45_000]) {
    const socket = await client(server);
    socket.write(request("part", { pad: 100_000 }).slice(0, bytes));
    clients.push(socket);
  }
  expect(await Promise.all(clients.map(closes))).toEqual([false, false, false]);
  clients[2]?.write(" ".repeat(20_000));
  expect(await Promise.all(clients.map(closes))).toEqual([true, false, false]);
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
  for (const socket of spare) socket.destroy();
  await server.close();
});

test("above the limit the newest connection is refused where all are in use", async () => {
  const server = await serve({ limits: { ...ROOMY, connections: 1 } });
  const used = await client(server);
  used.write(request("one"));
  await once(used, "data");
  const { host, port } = server.webhookAddress;
  const late = connect({ host, port, ca: server.ca });
  late.on("error", () => undefined);
  expect(await closes(late)).toBe(true);
  used.write(request("two"));
  const [answer] = await once(used, "data");
  expect(uids(String(answer))).toEqual(["two"]);
  used.destroy();
  await server.close();
});
