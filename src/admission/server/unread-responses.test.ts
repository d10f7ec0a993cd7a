import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { testModule, testSource } from "../../../test/support/admission/example-cluster.ts";
import { exchange, LIMITS, request, serve, uids } from "../../../test/support/admission/raw-connections.ts";
import { allow } from "../../core/decision/decision.ts";
import type { AdmissionOptions, AdmissionServer } from "../admission-server.ts";

/** More than the kernel's buffers of both ends hold. */
const RESPONSE_BYTES = 16_000_000;

/** A server whose responses are too large to be handed to the network at once. */
function withLargeResponses(bytes: number, options: Partial<AdmissionOptions>): Promise<AdmissionServer> {
  const module = testModule({
    big: {
      phase: "mutate",
      judge: ({ draft }) => {
        draft.set(["metadata", "annotations", "big"], "x".repeat(bytes), undefined);
        return allow();
      },
    },
    welcome: { phase: "validate", judge: () => allow() },
  });
  return serve({ source: testSource({}, module), ...options });
}

test.concurrent("requests behind a large unread response are answered in order", async () => {
  const server = await withLargeResponses(4_000_000, {
    limits: { ...LIMITS, headersMs: 20_000, requestMs: 20_000, keepAliveMs: 20_000 },
  });
  const second = request("two");
  const got = await exchange(server, async (socket) => {
    socket.pause();
    socket.write(request("one", { path: "/mutate/big" }) + second.slice(0, 300));
    await pause(200);
    socket.write(second.slice(300) + request("three", { lines: ["Connection: close"] }));
    await pause(100);
    socket.resume();
  });
  expect(uids(got)).toEqual(["one", "two", "three"]);
  await server.close();
});

test.concurrent("a client that never reads is disconnected, and no listeners accumulate", async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => warnings.push(name);
  process.on("warning", onWarning);
  const server = await withLargeResponses(RESPONSE_BYTES, {
    limits: { ...LIMITS, keepAliveMs: 400, checkEveryMs: 20 },
  });
  const { host, port } = server.webhookAddress;
  const socket = connect({ host, port, ca: server.ca }, () =>
    socket.write(request("one", { path: "/mutate/big" })),
  );
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("readable", resolve));
  await pause(1_500);
  process.off("warning", onWarning);
  expect(warnings).toEqual([]);
  // The server closed the connection: reading ends before the response does.
  let bytes = 0;
  socket.on("data", (chunk) => {
    bytes += chunk.length;
  });
  socket.resume();
  await new Promise((resolve) => socket.once("close", resolve));
  expect(bytes).toBeLessThan(RESPONSE_BYTES);
  await server.close();
});

test.concurrent("bounds the unread responses of all connections", async () => {
  const server = await withLargeResponses(RESPONSE_BYTES, {
    // Base64 in a patch: a third more.
    limits: { ...LIMITS, keepAliveMs: 20_000, requestMs: 20_000, inFlightBytes: 3.5 * RESPONSE_BYTES },
  });
  const { host, port } = server.webhookAddress;
  const sockets: TLSSocket[] = [];
  for (let i = 0; i < 4; i++) {
    const socket = connect({ host, port, ca: server.ca }, () =>
      socket.write(request(`r${i}`, { path: "/mutate/big" })),
    );
    socket.on("error", () => undefined);
    await new Promise((resolve) => socket.once("readable", resolve));
    sockets.push(socket);
  }
  const lengths = sockets.map(async (socket) => {
    let bytes = 0;
    let tail = "";
    socket.on("data", (chunk) => {
      bytes += chunk.length;
      tail = (tail + chunk.toString("latin1")).slice(-10);
      // The end of the review.
      if (tail.endsWith("}}")) socket.end();
    });
    await new Promise((resolve) => socket.once("close", resolve));
    return bytes > RESPONSE_BYTES;
  });
  expect(await Promise.all(lengths)).toEqual([false, false, true, true]);
  await server.close();
});
