import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { post, responseOf, review } from "../../../test/support/admission/example-cluster.ts";
import { startTestServer } from "../../../test/support/admission/server.ts";
import type { AdmissionServer } from "../admission-server.ts";

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

/** Sends raw text, and returns everything received until the server closes the connection. */
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

test("cuts off an endless head", async () => {
  expect(await raw((socket) => socket.write("POST /validate HTTP/1.1\r\nHost:"))).toMatch(/^HTTP\/1.1 408 /);
  await stillServes();
});

test("cuts off a slow body", async () => {
  const got = await raw((socket) => {
    socket.write(head("Content-Length: 5000"));
    const drip = setInterval(() => socket.write("x"), 50);
    socket.on("close", () => clearInterval(drip));
  });
  expect(got).toMatch(/^HTTP\/1.1 408 /);
  await stillServes();
});

test("cuts off a silent connection", async () => {
  expect(await raw(() => undefined)).toMatch(/^(HTTP\/1.1 408 |$)/);
});

test("a half-sent, abandoned request is harmless", async () => {
  const got = await raw((socket) => {
    socket.write(`${head("Content-Length: 5000")}{"apiVersion":`, () => socket.destroy());
  });
  expect(got).toBe("");
  await stillServes();
});

test("refuses a body with a too large announced length by its first bytes", async () => {
  const first = " ".repeat(BODY_BYTES + 1);
  const got = await raw((socket) => socket.write(head("Content-Length: 999999999") + first));
  expect(got).toMatch(/^HTTP\/1.1 413 /);
  expect(got).toMatch(/\r\nConnection: close\r\n/);
  expect(got).toContain(`more than ${BODY_BYTES} bytes`);
});

test("cuts off a body that is announced too large and never arrives", async () => {
  expect(await raw((socket) => socket.write(head("Content-Length: 999999999")))).toMatch(/^HTTP\/1.1 408 /);
});

test("refuses a growing body as soon as it is too large", async () => {
  const got = await raw((socket) => {
    socket.write(head("Transfer-Encoding: chunked"));
    // One chunk more than allowed, without an end.
    for (let sent = 0; sent <= BODY_BYTES; sent += 10_000) socket.write(`2710\r\n${" ".repeat(10_000)}\r\n`);
  });
  expect(got).toMatch(/^HTTP\/1.1 413 /);
  await stillServes();
});

test("reads a body of exactly the limit", async () => {
  const text = JSON.stringify(review());
  const url = `${server.webhookAddress.url}/validate/welcome`;
  expect((await post(url, server.ca, text.padEnd(BODY_BYTES))).status).toBe(200);
  expect((await post(url, server.ca, " ".repeat(BODY_BYTES + 1))).status).toBe(413);
});

test.each([
  ["announced", {}],
  ["not announced", { "transfer-encoding": "chunked" }],
])(
  "a review above the limit, %s, gets the verdict of each hook, and its connection is closed",
  async (_, headers) => {
    const body = JSON.stringify(review()).padEnd(3 * BODY_BYTES);
    const ask = (path: string) =>
      post(`${server.webhookAddress.url}${path}`, server.ca, body, {
        headers: { "content-type": "application/json", ...headers },
      });
    const denied = await ask("/validate/welcome");
    expect(denied).toMatchObject({ status: 200, headers: { connection: "close" } });
    expect(responseOf(denied)).toMatchObject({
      uid: "705ab4f5-6393-11e8-b7cc-42010a800002",
      allowed: false,
      status: {
        code: 413,
        reason: "RequestEntityTooLarge",
        message: expect.stringContaining(
          `Pod shop/web is too large for module tiny to read: the body has more than ${BODY_BYTES} bytes`,
        ),
      },
    });
    expect(responseOf(await ask("/mutate/label"))).toMatchObject({
      allowed: true,
      warnings: [expect.stringContaining("USHER-E05")],
    });
    await stillServes();
  },
);

test("refuses a head that is too large", async () => {
  const got = await raw((socket) => socket.write(head(`X-Long: ${"x".repeat(5_000)}`)));
  expect(got).toMatch(/^HTTP\/1.1 431 /);
});

test.each([
  "\0\0\0\0",
  "POST / HTTP/9.9\r\n\r\n",
  "HELLO\r\n\r\n",
  "POST /validate HTTP/1.1\r\nContent-Length: x\r\n\r\n",
])("refuses data that is not HTTP (%j)", async (text) => {
  expect(await raw((socket) => socket.write(text))).toMatch(/^HTTP\/1.1 4\d\d /);
  await stillServes();
});

test("a request refused by its head does not leak into the next one", async () => {
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
