import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { converse, LIMITS, request, serve, uids } from "../../../test/support/admission/plain-connections.ts";
import type { AdmissionServer } from "./admission-server.ts";

async function caller({ webhookAddress: { host, port }, ca }: AdmissionServer): Promise<TLSSocket> {
  const socket = connect({ host, port, ca });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return socket;
}

/** Until the other end has ended it; false where it has not within a while. */
async function ends(socket: TLSSocket): Promise<boolean> {
  const closed = new Promise<boolean>((resolve) => socket.once("close", () => resolve(true)));
  return socket.closed || Promise.race([closed, pause(300).then(() => false)]);
}

const ROOMY = { ...LIMITS, headersMs: 20_000, requestMs: 20_000 };

test.each([true, false])(
  "of requests that are not whole the oldest is ended where all are too much, and others are answered (short way: %s)",
  async (plain) => {
    const limits = { ...ROOMY, unfinishedBytes: 150_000 };
    const server = await serve({ plain, limits });
    const callers: TLSSocket[] = [];
    for (const bytes of [40_000, 60_000, 45_000]) {
      const socket = await caller(server);
      socket.write(request("part", { pad: 100_000 }).slice(0, bytes));
      callers.push(socket);
    }
    expect(await Promise.all(callers.map(ends))).toEqual([false, false, false]);
    callers[2]?.write(" ".repeat(20_000));
    expect(await Promise.all(callers.map(ends))).toEqual([true, false, false]);
    const got = await converse(server, (socket) => socket.write(request("whole", { pad: 80_000 })));
    expect(uids(got)).toEqual(["whole"]);
    for (const socket of callers) socket.destroy();
    await server.close();
  },
);

test("a connection that nobody uses gives way where there are too many", async () => {
  const server = await serve({ limits: { ...ROOMY, connections: 3 } });
  const spare = [await caller(server), await caller(server), await caller(server)];
  const got = await converse(server, (socket) => socket.write(request("fourth")));
  expect(uids(got)).toEqual(["fourth"]);
  expect(await Promise.all(spare.map(ends))).toEqual([true, false, false]);
  for (const socket of spare) socket.destroy();
  await server.close();
});

test("where all are in use the newest is turned away, and those go on", async () => {
  const server = await serve({ limits: { ...ROOMY, connections: 1, keepAliveMs: 20_000 } });
  const used = await caller(server);
  used.write(request("one"));
  await once(used, "data");
  const { host, port } = server.webhookAddress;
  const late = connect({ host, port, ca: server.ca });
  late.on("error", () => undefined);
  expect(await ends(late)).toBe(true);
  used.write(request("two"));
  const [answer] = await once(used, "data");
  expect(uids(String(answer))).toEqual(["two"]);
  used.destroy();
  await server.close();
});
