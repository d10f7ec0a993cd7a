// Clients of the ops port that are silent, or numerous.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { get } from "../../../test/support/admission/example-cluster.ts";
import { SILENT } from "../../core/log.ts";
import { Health } from "./health.ts";
import { type Ops, openOps } from "./ops.ts";

/** More than the kernel's buffers of both ends hold. */
const METRICS = "x".repeat(16_000_000);

const health = new Health();
let ops: Ops;

beforeAll(async () => {
  const metrics = async () => METRICS;
  ops = await openOps({ health, bind: "127.0.0.1", port: 0, metrics, log: SILENT });
});
afterAll(() => ops.stop());

async function client(text: string): Promise<Socket> {
  const { host, port } = ops.address;
  const socket = connect({ host, port, allowHalfOpen: true });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(text);
  return socket;
}

/** The server closes or resets a connection within 10 s, and Node checks once a second. */
const MOST_MS = 11_500;

test.concurrent.each([
  ["that sends nothing", ""],
  ["that sends half a head", "GET /livez HTTP/1.1\r\nHo"],
  ["that stops sending", "GET /livez HTTP/1.1\r\nHost: usher\r\n\r\n"],
])("a client %s is disconnected", async (_, text) => {
  const socket = await client(text);
  socket.resume();
  const ended = once(socket, "end");
  await expect(Promise.race([ended, pause(MOST_MS).then(() => "open")])).resolves.not.toBe("open");
  socket.destroy();
});

test.concurrent("a client that does not read its response is disconnected", async () => {
  const socket = await client("GET /metrics HTTP/1.1\r\nHost: usher\r\n\r\n");
  await pause(MOST_MS);
  let bytes = 0;
  socket.on("data", (chunk) => {
    bytes += chunk.length;
  });
  await Promise.race([once(socket, "end"), once(socket, "close")]);
  socket.destroy();
  expect(bytes).toBeLessThan(METRICS.length);
});

test("many silent clients do not lock out a probe", async () => {
  const silent = await Promise.all(Array.from({ length: 300 }, () => client("")));
  let open = silent.length;
  for (const socket of silent) {
    socket.resume();
    socket.once("end", () => open--);
  }
  health.beat();
  expect((await get(`${ops.address.url}/livez`)).status).toBe(200);
  await pause(500);
  expect(open).toBeLessThanOrEqual(100);
  for (const socket of silent) socket.destroy();
});
