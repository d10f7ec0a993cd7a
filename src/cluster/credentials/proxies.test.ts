import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Server,
  type Socket,
} from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { inspect } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { makeCertificate } from "../../admission/tls/certificate.ts";
import type { JsonObject } from "../../core/json.ts";
import { createClient } from "../client/https-client.ts";
import { agentFor } from "./agent.ts";
import { kubeconfigCredentials } from "./kubeconfig.ts";

// A name that no resolver knows: only who goes through the proxy arrives.
const NAME = "api.cluster.invalid";

let folder: string;
let ca: string;
let api: Server;
let http: Server;
let socks: Server;
const asked: string[] = [];
const headers: IncomingMessage["headers"][] = [];

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** Whatever it is asked for, the API server of the test is what it connects to. */
function splice(client: Duplex, begin: (there: Socket) => void): void {
  const there = connect(portOf(api), "127.0.0.1", () => {
    begin(there);
    there.pipe(client).pipe(there);
  });
  there.on("error", () => client.destroy());
  client.on("error", () => there.destroy());
}

/** What the SOCKS proxy answers to the request: 0 is success. */
let verdict = 0;

/** SOCKS 5: a greeting, a request with a name, an answer, and then it is a pipe (RFC 1928). */
async function serveSocks(client: Socket): Promise<void> {
  client.on("error", () => undefined);
  const [greeting] = (await once(client, "data")) as [Buffer];
  let who = "";
  // Where a password is offered it is wanted.
  if (greeting.includes(2, 2)) {
    client.write(Buffer.from([5, 2]));
    const [pair] = (await once(client, "data")) as [Buffer];
    const length = pair[1] ?? 0;
    who = ` ${pair.subarray(2, 2 + length)}:${pair.subarray(3 + length)}`;
    client.write(Buffer.from([1, who === " me:secret" ? 0 : 1]));
    if (who !== " me:secret") return void client.end();
  } else client.write(Buffer.from([5, 0]));
  const [request] = (await once(client, "data")) as [Buffer];
  const host = request[3] === 3 ? request.subarray(5, 5 + (request[4] ?? 0)).toString() : "an address";
  asked.push(`${host}:${request.readUInt16BE(request.length - 2)}${who}`);
  if (verdict !== 0) return void client.end(Buffer.from([5, verdict, 0, 1, 0, 0, 0, 0, 0, 0]));
  // In two pieces, and by a name: neither is usual, both are allowed.
  splice(client, () => {
    client.write(Buffer.from([5, 0, 0]));
    setImmediate(() => client.write(Buffer.from([3, 2, 97, 98, 0, 0])));
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "usher-proxies-"));
  const certificate = await makeCertificate([NAME]);
  ca = Buffer.from(certificate.ca).toString("base64");
  api = createHttpsServer({ cert: certificate.cert, key: certificate.key }, (request, response) => {
    headers.push(request.headers);
    response.setHeader("content-type", "application/json").end(JSON.stringify({ path: request.url }));
  });
  http = createHttpServer().on("connect", (request: IncomingMessage, client: Duplex, head: Buffer) => {
    asked.push(`${request.url} ${request.headers["proxy-authorization"] ?? ""}`.trim());
    splice(client, (there) => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      there.write(head);
    });
  });
  socks = createTcpServer((client) => void serveSocks(client));
  for (const server of [api, http, socks]) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
});
afterAll(async () => {
  for (const server of [api, http, socks]) server.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  asked.length = 0;
  headers.length = 0;
  verdict = 0;
});

async function clientThrough(proxy: string, user: JsonObject = { token: "t" }) {
  const file = join(folder, "config");
  const cluster = { server: `https://${NAME}:6443`, "certificate-authority-data": ca, "proxy-url": proxy };
  const config = {
    "current-context": "a",
    clusters: [{ name: "a", cluster }],
    users: [{ name: "a", user }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
  };
  await writeFile(file, JSON.stringify(config));
  return createClient(await kubeconfigCredentials({ file }));
}

const proxies: readonly [string, () => string, string][] = [
  ["CONNECT of HTTP", () => `http://127.0.0.1:${portOf(http)}`, `${NAME}:6443`],
  [
    "CONNECT with a password",
    () => `http://me:secret@127.0.0.1:${portOf(http)}`,
    `${NAME}:6443 Basic ${Buffer.from("me:secret").toString("base64")}`,
  ],
  ["SOCKS 5", () => `socks5h://127.0.0.1:${portOf(socks)}`, `${NAME}:6443`],
  [
    "SOCKS 5 with a password",
    () => `socks5://me:secret@127.0.0.1:${portOf(socks)}`,
    `${NAME}:6443 me:secret`,
  ],
  [
    "SOCKS 5, as kubectl writes it: the proxy resolves names",
    () => `socks5://127.0.0.1:${portOf(socks)}`,
    `${NAME}:6443`,
  ],
];
test.each(proxies)("the API server is reached through a proxy: %s", async (_, proxy, expected) => {
  const client = await clientThrough(proxy());
  expect((await client.request("GET", "/version")).body).toEqual({ path: "/version" });
  expect((await client.request("GET", "/livez")).body).toEqual({ path: "/livez" });
  // One connection for both, and the server sees who we are.
  expect(asked).toEqual([expected]);
  expect(headers[0]).toMatchObject({ authorization: "Bearer t" });
  // What is meant for the proxy stays there.
  expect(headers[0]).not.toHaveProperty("proxy-authorization");
  client.close();
});

test.each(["http", "socks5"])("a %s proxy that is not there is an error with its address", async (scheme) => {
  const client = await clientThrough(`${scheme}://127.0.0.1:1`);
  await expect(client.request("GET", "/version")).rejects.toThrow(/127\.0\.0\.1:1/);
  client.close();
});

const refusals: readonly [string, number, string, RegExp][] = [
  ["its rules", 2, "", /its rules do not allow it/],
  ["nobody behind it", 5, "", /the connection was refused/],
  ["an unknown code", 99, "", /refused with 99/],
  ["another password", 0, "me:other@", /did not take the password/],
];
test.each(refusals)("a SOCKS proxy that refuses is told of: %s", async (_, code, password, message) => {
  verdict = code;
  const client = await clientThrough(`socks5://${password}127.0.0.1:${portOf(socks)}`);
  await expect(client.request("GET", "/version")).rejects.toThrow(message);
  client.close();
});

test("a server that speaks something else is no SOCKS proxy", async () => {
  const client = await clientThrough(`socks5://127.0.0.1:${portOf(http)}`);
  await expect(client.request("GET", "/version")).rejects.toThrow(/SOCKS 5|ended the connection/);
  client.close();
});

test("a client certificate that is none is an error, and the connection to the SOCKS proxy ends", async () => {
  const closed = new Promise((resolve) =>
    socks.once("connection", (socket) => socket.once("close", resolve)),
  );
  const none = Buffer.from("none").toString("base64");
  const user = { "client-certificate-data": none, "client-key-data": none };
  const client = await clientThrough(`socks5://127.0.0.1:${portOf(socks)}`, user);
  await expect(client.request("GET", "/version", { timeoutMs: 5_000 })).rejects.toThrow(/PEM|no start line/);
  await closed;
  client.close();
});

const secrets: readonly [string, string, RegExp][] = [
  ["an unknown kind", "socks4://me:s3cret@proxy:1080", /and is socks4:\/\/proxy:1080$/],
  ["no kind", "me:s3cret@proxy:1080", /and is proxy:1080$/],
  ["no address", "http://me:s3cret@:x:1", /is no address: http:\/\/:x:1$/],
  ["no address of SOCKS", "socks5://me:s3cret@:x:1", /is no address: socks5:\/\/:x:1$/],
];
test.each(secrets)("a proxy's password is in no message: %s", async (_, proxy, message) => {
  const client = await clientThrough(proxy);
  const error = await client.request("GET", "/version").catch((caught: unknown) => caught);
  expect(String(error)).toMatch(message);
  expect(inspect(error, { depth: 9 })).not.toContain("s3cret");
  client.close();
});

test("a proxy's password is in no message: SOCKS for a server without TLS", async () => {
  const entry = { server: "http://api", namespace: undefined, user: {} };
  const open = () => agentFor({ ...entry, cluster: { "proxy-url": "socks5://me:s3cret@proxy" } }, {});
  expect(open).toThrow("the kubeconfig's proxy-url socks5://proxy is only for a server with https");
});

test("a proxy's password is in no message: a variable that has no address", () => {
  vi.stubEnv("HTTPS_PROXY", "http://me:s3cret@:x:1");
  try {
    const entry = { server: "https://api", namespace: undefined, cluster: {}, user: {} };
    const open = () => agentFor(entry, {});
    expect(open).toThrow(/HTTPS_PROXY/);
    expect(open).not.toThrow(/s3cret/);
  } finally {
    vi.unstubAllEnvs();
  }
});
