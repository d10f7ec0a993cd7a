import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { post, review } from "../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import type { AdmissionServer } from "./admission-server.ts";

const BODY_BYTES = 100_000;
let server: AdmissionServer;

beforeAll(async () => {
  server = await startTestServer({
    limits: {
      bodyBytes: BODY_BYTES,
      headersMs: 300,
      requestMs: 600,
      checkEveryMs: 50,
      handshakeMs: 300,
      headerBytes: 4_096,
    },
  });
});
afterAll(() => server.close());

/** Sends text as it is, and gives all that comes back until the server hangs up. */
function raw(play: (socket: TLSSocket) => void, options: ConnectionOptions = {}): Promise<string> {
  const { host, port } = server.webhookAddress;
  return new Promise((resolve) => {
    let got = "";
    const socket = connect({ host, port, ca: server.ca, ...options }, () => play(socket));
    socket.setEncoding("latin1");
    socket.on("data", (text) => {
      got += text;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(got));
  });
}

function head(...lines: string[]): string {
  return [
    "POST /validate/welcome HTTP/1.1",
    "Host: usher",
    "Content-Type: application/json",
    ...lines,
    "",
    "",
  ].join("\r\n");
}

async function stillServes(): Promise<void> {
  const got = await post(`${server.webhookAddress.url}/validate/welcome`, server.ca, review());
  expect(got.status).toBe(200);
}

test("a head that never ends is cut off", async () => {
  expect(await raw((socket) => socket.write("POST /validate HTTP/1.1\r\nHost:"))).toMatch(/^HTTP\/1.1 408 /);
  await stillServes();
});

test("a body that drips is cut off", async () => {
  const got = await raw((socket) => {
    socket.write(head("Content-Length: 5000"));
    const drip = setInterval(() => socket.write("x"), 50);
    socket.on("close", () => clearInterval(drip));
  });
  expect(got).toMatch(/^HTTP\/1.1 408 /);
  await stillServes();
});

test("a connection on which nothing is said is cut off", async () => {
  expect(await raw(() => undefined)).toMatch(/^(HTTP\/1.1 408 |$)/);
});

test("a request that is half sent and given up harms nobody", async () => {
  const got = await raw((socket) => {
    socket.write(`${head("Content-Length: 5000")}{"apiVersion":`, () => socket.destroy());
  });
  expect(got).toBe("");
  await stillServes();
});

test("a body that is announced too large is refused unread", async () => {
  const got = await raw((socket) => socket.write(head("Content-Length: 999999999")));
  expect(got).toMatch(/^HTTP\/1.1 413 /);
  expect(got).toMatch(/\r\nConnection: close\r\n/);
  expect(got).toContain(`larger than ${BODY_BYTES} bytes`);
});

test("a body that grows too large is refused as soon as it is", async () => {
  const got = await raw((socket) => {
    socket.write(head("Transfer-Encoding: chunked"));
    // One chunk more than is allowed, and no end.
    for (let sent = 0; sent <= BODY_BYTES; sent += 10_000) socket.write(`2710\r\n${" ".repeat(10_000)}\r\n`);
  });
  expect(got).toMatch(/^HTTP\/1.1 413 /);
  await stillServes();
});

test("a body of just the limit is read", async () => {
  const text = JSON.stringify(review());
  const url = `${server.webhookAddress.url}/validate/welcome`;
  expect((await post(url, server.ca, text.padEnd(BODY_BYTES))).status).toBe(200);
  expect((await post(url, server.ca, text.padEnd(BODY_BYTES + 1))).status).toBe(413);
});

test("a head that is too large is refused", async () => {
  const got = await raw((socket) => socket.write(head(`X-Long: ${"x".repeat(5_000)}`)));
  expect(got).toMatch(/^HTTP\/1.1 431 /);
});

test.each([
  "\0\0\0\0",
  "POST / HTTP/9.9\r\n\r\n",
  "HELLO\r\n\r\n",
  "POST /validate HTTP/1.1\r\nContent-Length: x\r\n\r\n",
])("what is no HTTP (%j) is refused", async (text) => {
  expect(await raw((socket) => socket.write(text))).toMatch(/^HTTP\/1.1 4\d\d /);
  await stillServes();
});

test("what is refused by its head does not spill into the next request", async () => {
  const smuggled = head("Content-Length: 0");
  const first = head(`Content-Length: ${smuggled.length}`).replace("application/json", "text/plain");
  const got = await raw((socket) => socket.write(first + smuggled));
  expect(got.match(/HTTP\/1.1 /g)).toHaveLength(1);
  expect(got).toMatch(/^HTTP\/1.1 415 /);
});

test("pipelined requests are answered in order", async () => {
  const body = (uid: string) => JSON.stringify(review({ uid }));
  const request = (uid: string, ...lines: string[]) =>
    head(`Content-Length: ${body(uid).length}`, ...lines) + body(uid);
  const got = await raw((socket) => socket.write(request("one") + request("two", "Connection: close")));
  expect([...got.matchAll(/"uid":"(\w+)"/g)].map((match) => match[1])).toEqual(["one", "two"]);
});
