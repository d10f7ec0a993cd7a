// Connections whose requests wait for facts. Run in sequence: each has one second.
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { testSource } from "../../../test/support/admission/example-cluster.ts";
import {
  bodyOf,
  exchange,
  LIMITS,
  request,
  serve,
  uids,
} from "../../../test/support/admission/raw-connections.ts";
import type { Deadline } from "../../core/evaluate/source.ts";
import type { AdmissionOptions } from "../admission-server.ts";
import { parsedBytes } from "../review/structure.ts";

/** A server whose facts arrive when `meet` is called. */
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

test("evaluation stops when the client disconnects, and the call counts as failed", async () => {
  let failed = 0;
  const callFailed = () => {
    failed += 1;
  };
  const { server, asked } = await waiting({ callFailed });
  await exchange(server, async (socket) => {
    socket.write(request("answered"));
    await pause(50);
  });
  expect(failed).toBe(0);
  await exchange(server, async (socket) => {
    socket.write(slow("gone"));
    await expect.poll(() => asked.length).toBe(1);
    expect(asked[0]?.signal.aborted).toBe(false);
    socket.destroy();
  });
  await expect.poll(() => asked[0]?.signal.aborted).toBe(true);
  await expect.poll(() => failed).toBe(1);
  await server.close();
});

test("responses to pipelined requests keep their order", async () => {
  const { server, asked, meet } = await waiting();
  const got = await exchange(server, async (socket) => {
    socket.write(slow("first"));
    await expect.poll(() => asked.length).toBe(1);
    socket.write(request("second"));
    await pause(50);
    meet();
  });
  expect(uids(got)).toEqual(["first", "second"]);
  await server.close();
});

test("disconnects a client that sends garbage behind a request in flight", async () => {
  const { server, asked, meet } = await waiting();
  const got = await exchange(server, async (socket) => {
    socket.write(slow("first"));
    await expect.poll(() => asked.length).toBe(1);
    socket.write(" ".repeat(100_000));
  });
  expect(got).toMatch(/^(HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n\r\n)?$/);
  await expect.poll(() => asked[0]?.signal.aborted).toBe(true);
  meet();
  await server.close();
});

test("disconnects a client with too many requests in flight", async () => {
  const { server, asked, meet } = await waiting({ limits: { ...LIMITS, pipelined: 3 } });
  const requests = (n: number) => Array.from({ length: n }, (_, i) => slow(`r${i}`)).join("");
  const flood = await exchange(server, (socket) => socket.write(requests(4)));
  expect(flood).toBe("");
  await expect.poll(() => asked.every(({ signal }) => signal.aborted)).toBe(true);
  const few = exchange(server, (socket) => socket.write(requests(3)));
  await pause(100);
  meet();
  expect(uids(await few)).toEqual(["r0", "r1", "r2"]);
  await server.close();
});

test("draining closes idle connections and answers requests in flight with Connection: close", async () => {
  const { server, asked, meet } = await waiting({ limits: { ...LIMITS, keepAliveMs: 60_000 } });
  let drained: Promise<void> | undefined;
  const idle = exchange(server, (socket) => socket.write(request("idle")));
  const busy = exchange(server, async (socket) => {
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

test("draining does not wait for clients that keep their side open", async () => {
  const { server, asked, meet } = await waiting({
    limits: { ...LIMITS, keepAliveMs: 60_000, finishMs: 60_000 },
  });
  const { host, port } = server.webhookAddress;
  const halfOpen = { host, port, ca: server.ca, allowHalfOpen: true };
  const socket = connect(halfOpen, () => socket.write(slow("busy")));
  await expect.poll(() => asked.length).toBe(1);
  const drained = server.drain({ serveOnMs: 0 });
  // By then the server has stopped listening and closed idle connections.
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

test("requests that wait are bounded in bytes, and the oldest is closed", async () => {
  // Two fit, and three do not.
  const inFlightBytes = 2.5 * parsedBytes(Buffer.from(bodyOf("a")));
  const { server, asked, meet } = await waiting({
    limits: { ...LIMITS, keepAliveMs: 30_000, inFlightBytes },
  });
  const exchanges: Promise<string>[] = [];
  for (const [i, uid] of ["a", "b", "c"].entries()) {
    exchanges.push(
      exchange(server, (socket) =>
        socket.write(request(uid, { path: "/validate/pool", lines: ["Connection: close"] })),
      ),
    );
    await expect.poll(() => asked.length).toBe(i + 1);
  }
  await expect.poll(() => asked[0]?.signal.aborted).toBe(true);
  meet();
  expect((await Promise.all(exchanges)).map(uids)).toEqual([[], ["b"], ["c"]]);
  await server.close();
});

test("large concurrent bodies close no connection", async () => {
  const large = 2_000_000;
  const server = await serve({
    limits: {
      ...LIMITS,
      bodyBytes: 2 * large,
      inFlightBytes: 4 * large,
      requestMs: 20_000,
      keepAliveMs: 20_000,
    },
  });
  const text = request("large", { pad: large, lines: ["Connection: close"] });
  const exchanges = Array.from({ length: 12 }, () => exchange(server, (socket) => socket.write(text)));
  expect((await Promise.all(exchanges)).map(uids)).toEqual(exchanges.map(() => ["large"]));
  await server.close();
});
