// Clients that are refused while they send. Their server has the usual request timeout, so that a busy machine does not
// cut them off.
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { post } from "../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import type { AdmissionServer } from "../admission-server.ts";

let server: AdmissionServer;

beforeAll(async () => {
  server = await startTestServer({ limits: { bodyBytes: 100_000 } });
});
afterAll(() => server.close());

test("a client that is still sending when refused can read the reason", async () => {
  const url = `${server.webhookAddress.url}/validate/welcome`;
  for (let i = 0; i < 5; i++) expect((await post(url, server.ca, " ".repeat(3_000_000))).status).toBe(413);
});

test("a slow client is not cut off while it sends", async () => {
  const { host, port } = server.webhookAddress;
  const errors: Error[] = [];
  const socket = connect({ host, port, ca: server.ca });
  socket.on("error", (error) => errors.push(error));
  await once(socket, "secureConnect");
  let got = "";
  socket.on("data", (chunk) => {
    got += chunk;
  });
  const closed = once(socket, "close");
  const bytes = 150_000;
  socket.write(
    `POST /validate/welcome HTTP/1.1\r\nHost: usher\r\nContent-Type: application/json\r\nContent-Length: ${bytes}\r\n\r\n`,
  );
  // Longer than the server waits for a client that does not send.
  for (let sent = 0; sent < bytes; sent += 10_000) {
    expect(socket.writable).toBe(true);
    socket.write(" ".repeat(10_000));
    await pause(150);
  }
  await closed;
  expect(errors).toEqual([]);
  expect(got).toMatch(/^HTTP\/1.1 413 /);
});

test("a refused client that stops sending is disconnected", async () => {
  const { host, port } = server.webhookAddress;
  const socket = connect({ host, port, ca: server.ca });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  socket.resume();
  socket.write("POST /validate HTTP/1.1\r\nHost: usher\r\nContent-Length: 5000\r\n\r\nx");
  const started = performance.now();
  await once(socket, "close");
  expect(performance.now() - started).toBeLessThan(10_000);
});
