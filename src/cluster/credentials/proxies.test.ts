import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer, request } from "node:https";
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
import type { TLSSocket } from "node:tls";
import { inspect } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { makeCertificate } from "../../admission/tls/certificate.ts";
import type { JsonObject } from "../../core/json.ts";
import { createClient } from "../client/https-client.ts";
import { CONNECTION } from "./credentials.ts";
import { kubeconfigCredentials } from "./kubeconfig.ts";
import { agentFor, SocksAgent } from "./kubeconfig-agent.ts";

// A name that no resolver knows: only connections through the proxy arrive.
const NAME = "api.cluster.invalid";

let folder: string;
let ca: string;
let api: Server;
let http: Server;
let socks: Server;
const targets: string[] = [];
const headers: IncomingMessage["headers"][] = [];
const clientNames: (string | undefined)[] = [];

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** Connects to the test's API server for any target. */
function splice(client: Duplex, begin: (there: Socket) => void): void {
  const there = connect(portOf(api), "127.0.0.1", () => {
    begin(there);
    there.pipe(client).pipe(there);
  });
  there.on("error", () => client.destroy());
  client.on("error", () => there.destroy());
}

/** The reply code of the SOCKS proxy: 0 is success. */
let reply = 0;

/** SOCKS 5 (RFC 1928): a greeting, a request by name, a reply, then a pipe. */
async function serveSocks(client: Socket): Promise<void> {
  client.on("error", () => undefined);
  const [greeting] = (await once(client, "data")) as [Buffer];
  let who = "";
  // Requires a password if the client offers one.
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
  targets.push(`${host}:${request.readUInt16BE(request.length - 2)}${who}`);
  if (reply !== 0) return void client.end(Buffer.from([5, reply, 0, 1, 0, 0, 0, 0, 0, 0]));
  // In two pieces, and with a name as the bound address: both are unusual and allowed.
  splice(client, () => {
    client.write(Buffer.from([5, 0, 0]));
    setImmediate(() => client.write(Buffer.from([3, 2, 97, 98, 0, 0])));
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "usher-proxies-"));
  const certificate = await makeCertificate([NAME]);
  ca = certificate.ca;
  const { cert, key } = certificate;
  const options = { cert, key, requestCert: true, rejectUnauthorized: false };
  api = createHttpsServer(options, (request, response) => {
    headers.push(request.headers);
    clientNames.push((request.socket as TLSSocket).getPeerCertificate().subjectaltname);
    const respond = () =>
      response.setHeader("content-type", "application/json").end(JSON.stringify({ path: request.url }));
    setTimeout(respond, request.url === "/slow" ? 200 : 0);
  });
  http = createHttpServer().on("connect", (request: IncomingMessage, client: Duplex, head: Buffer) => {
    targets.push(`${request.url} ${request.headers["proxy-authorization"] ?? ""}`.trim());
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
  targets.length = 0;
  headers.length = 0;
  clientNames.length = 0;
  reply = 0;
});

async function clientThrough(proxy: string, user: JsonObject = { token: "t" }, trusted = ca) {
  const file = join(folder, "config");
  const cluster = {
    server: `https://${NAME}:6443`,
    "certificate-authority-data": Buffer.from(trusted).toString("base64"),
    "proxy-url": proxy,
  };
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
  // One connection for both, with the credentials.
  expect(targets).toEqual([expected]);
  expect(headers[0]).toMatchObject({ authorization: "Bearer t" });
  // The proxy's credentials are not sent to the server.
  expect(headers[0]).not.toHaveProperty("proxy-authorization");
  client.close();
});

test.each(["http", "socks5"])("a %s proxy that is down is an error with its address", async (scheme) => {
  const client = await clientThrough(`${scheme}://127.0.0.1:1`);
  await expect(client.request("GET", "/version")).rejects.toThrow(/127\.0\.0\.1:1/);
  client.close();
});

const refusals: readonly [string, number, string, RegExp][] = [
  ["by its rules", 2, "", /NotAllowed/],
  ["the server is down", 5, "", /ConnectionRefused/],
  ["unknown reply code", 99, "", /rejected connection/],
  ["wrong password", 0, "me:other@", /Authentication failed/],
];
test.each(refusals)(
  "a SOCKS proxy that refuses is an error with its reply: %s",
  async (_, code, password, message) => {
    reply = code;
    const client = await clientThrough(`socks5://${password}127.0.0.1:${portOf(socks)}`);
    await expect(client.request("GET", "/version")).rejects.toThrow(message);
    client.close();
  },
);

test("a server of another protocol is reported as not a SOCKS proxy", async () => {
  const client = await clientThrough(`socks5://127.0.0.1:${portOf(http)}`);
  await expect(client.request("GET", "/version")).rejects.toThrow(/invalid socks version|Socket closed/);
  client.close();
});

test("an invalid client certificate is an error, and closes the connection to the SOCKS proxy", async () => {
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

test("a SOCKS proxy may have an IPv6 address", async () => {
  const client = await clientThrough("socks5://[::1]:1");
  await expect(client.request("GET", "/version")).rejects.toThrow("ECONNREFUSED ::1:1");
  client.close();
});

test("a server with an untrusted certificate behind a SOCKS proxy is reported as such", async () => {
  const other = await makeCertificate([NAME]);
  const client = await clientThrough(`socks5://127.0.0.1:${portOf(socks)}`, { token: "t" }, other.ca);
  await expect(client.request("GET", "/version")).rejects.toMatchObject({
    cause: { code: expect.stringMatching(/CERT|SIGNATURE/) },
  });
  client.close();
});

test("a client certificate reaches the server behind a SOCKS proxy", async () => {
  const me = await makeCertificate(["me"]);
  const user = {
    "client-certificate-data": Buffer.from(me.cert).toString("base64"),
    "client-key-data": Buffer.from(me.key).toString("base64"),
  };
  const client = await clientThrough(`socks5://127.0.0.1:${portOf(socks)}`, user);
  await client.request("GET", "/version");
  expect(clientNames).toEqual(["DNS:me"]);
  client.close();
});

test("a response may take longer than the idle timeout of the SOCKS agent", async () => {
  const agent = new SocksAgent(`socks5://127.0.0.1:${portOf(socks)}`, { ...CONNECTION, timeout: 50, ca });
  const sent = request({ hostname: NAME, port: 6443, path: "/slow", agent }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.resume();
  agent.destroy();
});

const secrets: readonly [string, string, RegExp][] = [
  ["an unknown scheme", "socks4://me:s3cret@proxy:1080", /got socks4:\/\/proxy:1080$/],
  ["no scheme", "me:s3cret@proxy:1080", /got proxy:1080$/],
  ["no valid URL", "http://me:s3cret@:x:1", /is not a valid URL: http:\/\/:x:1$/],
  ["no valid URL of SOCKS", "socks5://me:s3cret@:x:1", /is not a valid URL: socks5:\/\/:x:1$/],
];
test.each(secrets)("no error contains a proxy's password: %s", async (_, proxy, message) => {
  const client = await clientThrough(proxy);
  const error = await client.request("GET", "/version").catch((caught: unknown) => caught);
  expect(String(error)).toMatch(message);
  expect(inspect(error, { depth: 9 })).not.toContain("s3cret");
  client.close();
});

test("no error contains a proxy's password: SOCKS for a server without TLS", async () => {
  const entry = { server: "http://api", namespace: undefined, user: {} };
  const open = () => agentFor({ ...entry, cluster: { "proxy-url": "socks5://me:s3cret@proxy" } }, {});
  await expect(open()).rejects.toThrow(
    "the kubeconfig's proxy-url socks5://proxy needs a server with https://",
  );
});

test("no error contains a proxy's password: an invalid variable", async () => {
  vi.stubEnv("HTTPS_PROXY", "http://me:s3cret@:x:1");
  try {
    const entry = { server: "https://api", namespace: undefined, cluster: {}, user: {} };
    const open = () => agentFor(entry, {});
    await expect(open()).rejects.toThrow(/HTTPS_PROXY/);
    await expect(open()).rejects.not.toThrow(/s3cret/);
  } finally {
    vi.unstubAllEnvs();
  }
});
