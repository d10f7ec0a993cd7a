import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { post, responseOf, review } from "../../../test/support/admission/example-cluster.ts";
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

test("a body that is announced too large is refused by its first bytes", async () => {
  const first = " ".repeat(BODY_BYTES + 1);
  const got = await raw((socket) => socket.write(head("Content-Length: 999999999") + first));
  expect(got).toMatch(/^HTTP\/1.1 413 /);
  expect(got).toMatch(/\r\nConnection: close\r\n/);
  expect(got).toContain(`more than ${BODY_BYTES} bytes`);
});

test("a body that is announced too large and never comes is cut off", async () => {
  expect(await raw((socket) => socket.write(head("Content-Length: 999999999")))).toMatch(/^HTTP\/1.1 408 /);
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
