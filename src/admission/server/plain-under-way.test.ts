// What happens to connections while their requests are being answered. One test at a time: these have a second for what they wait for,
// and servers that start at once would take it from each other.
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { testSource } from "../../../test/support/admission/example-cluster.ts";
import { converse, LIMITS, request, serve, uids } from "../../../test/support/admission/plain-connections.ts";
import type { Deadline } from "../../core/view/source.ts";
import type { AdmissionOptions } from "./admission-server.ts";

/** A server whose needs are never met, until they are. */
async function waiting(options: Partial<AdmissionOptions> = {}) {
  const asked: Deadline[] = [];
  const { promise: met, resolve: meet } = Promise.withResolvers<void>();
  const server = await serve({
    source: testSource({
      fetch: async (needs, deadline) => {
        asked.push(deadline);
        await met;
        return needs.map(() => ({ found: {}, complete: true }));
      },
    }),
    ...options,
  });
  return { server, asked, meet };
}

const slow = (uid: string) => request(uid, { path: "/validate/pool" });

test("a caller that is gone is not worked for any more", async () => {
  const { server, asked } = await waiting();
  await converse(server, async (socket) => {
    socket.write(slow("gone"));
    await expect.poll(() => asked.length).toBe(1);
    expect(asked[0]?.signal.aborted).toBe(false);
    socket.destroy();
  });
  await expect.poll(() => asked[0]?.signal.aborted).toBe(true);
  await server.close();
});

test("a request that comes while another is being answered waits for its turn", async () => {
  const { server, asked, meet } = await waiting();
  const got = await converse(server, async (socket) => {
    socket.write(slow("first"));
    await expect.poll(() => asked.length).toBe(1);
    socket.write(request("second"));
    await pause(50);
    meet();
  });
  expect(uids(got)).toEqual(["first", "second"]);
  await server.close();
});

test("whoever floods while being answered is cut off", async () => {
  const { server, asked, meet } = await waiting();
  const got = await converse(server, async (socket) => {
    socket.write(slow("first"));
    await expect.poll(() => asked.length).toBe(1);
    socket.write(" ".repeat(100_000));
  });
  expect(got).toBe("");
  meet();
  await server.close();
});

test("a drain closes idle connections, answers what is under way and says goodbye with it", async () => {
  const { server, asked, meet } = await waiting({ limits: { ...LIMITS, keepAliveMs: 60_000 } });
  let drained: Promise<void> | undefined;
  const idle = converse(server, (socket) => socket.write(request("idle")));
  const busy = converse(server, async (socket) => {
    socket.write(slow("busy"));
    await expect.poll(() => asked.length).toBe(1);
    drained = server.drain({ serveOnMs: 0 });
    expect(uids(await idle)).toEqual(["idle"]);
    meet();
  });
  const got = await busy;
  expect(uids(got)).toEqual(["busy"]);
  expect(got).toMatch(/\r\nConnection: close\r\n/);
  await drained;
});

test("a drain does not wait for those who do not hang up", async () => {
  const { server, asked, meet } = await waiting({
    limits: { ...LIMITS, keepAliveMs: 60_000, finishMs: 60_000 },
  });
  const { host, port } = server.webhookAddress;
  const stubborn = { host, port, ca: server.ca, allowHalfOpen: true };
  const socket = connect(stubborn, () => socket.write(slow("busy")));
  await expect.poll(() => asked.length).toBe(1);
  const drained = server.drain({ serveOnMs: 0 });
  // The door is closed by then, and what was idle has been ended.
  await pause(200);
  meet();
  let got = "";
  socket.on("data", (chunk) => {
    got += chunk;
  });
  await drained;
  expect(uids(got)).toEqual(["busy"]);
  socket.destroy();
});
