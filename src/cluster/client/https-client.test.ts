import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Agent as SecureAgent } from "node:https";
import { type AddressInfo, connect, createServer as createTcp, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CONNECTION, type Credentials } from "../credentials/credentials.ts";
import { retryAfterMs } from "./api-response.ts";
import { type Client, ConnectionError } from "./client.ts";
import { createClient, type HttpsClientOptions, TooLargeError } from "./https-client.ts";

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

let server: Server;
let handler: Handler;
let client: Client;
let token: string;
let renewals: number;
let renewalMs: number;
let next: string | undefined;
/** Why there are no credentials any more, where there are none. */
let without: Error | undefined;

/** Plain HTTP: what is tested here is the same above TLS. */
function credentials(path = ""): Credentials {
  const agent = new Agent(CONNECTION);
  return {
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`,
    namespace: undefined,
    access: async () => {
      if (without !== undefined) throw without;
      return { agent, headers: { authorization: `Bearer ${token}` } };
    },
    renew: async () => {
      renewals += 1;
      // Reading files, or a plugin's program, takes its time.
      await sleep(renewalMs);
      const changed = next !== undefined && next !== token;
      token = next ?? token;
      return changed;
    },
    close: () => agent.destroy(),
  };
}

function open(options?: HttpsClientOptions): Client {
  client.close();
  client = createClient(credentials(), options);
  return client;
}

beforeEach(async () => {
  [token, renewals, renewalMs, next, without] = ["one", 0, 20, undefined, undefined];
  server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    handler(request, response, body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  client = createClient(credentials());
});

afterEach(async () => {
  client.close();
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});

function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

async function collect(lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const line of lines) all.push(line);
  return all;
}

describe("a request", () => {
  test("says who we are and what it wants, and asks for no compression", async () => {
    let seen: IncomingMessage["headers"] = {};
    handler = (request, response, body) => {
      seen = request.headers;
      json(response, 201, { method: request.method, url: request.url, body: JSON.parse(body) });
    };
    const contentType = "application/merge-patch+json";
    const answer = await client.request("PATCH", "/api/v1/x?a=b", { body: { a: "ä" }, contentType });
    expect(answer).toMatchObject({
      status: 201,
      body: { method: "PATCH", url: "/api/v1/x?a=b", body: { a: "ä" } },
    });
    expect(seen).toMatchObject({
      authorization: "Bearer one",
      accept: "application/json",
      "content-type": contentType,
    });
    expect(seen["content-length"]).toBe("10");
    expect(seen["accept-encoding"]).toBeUndefined();
  });

  test("keeps to the path of a server behind a prefix", async () => {
    handler = (request, response) => json(response, 200, request.url);
    const behind = createClient(credentials("/k8s/clusters/c-1/"));
    expect((await behind.request("GET", "/api")).body).toBe("/k8s/clusters/c-1/api");
    behind.close();
  });

  test("is answered by a refusal too, with what it asks for", async () => {
    handler = (_, response) => json(response, 429, { message: "slow down" }, { "retry-after": "3" });
    const answer = await client.request("GET", "/api");
    expect(answer).toMatchObject({ status: 429, body: { message: "slow down" } });
    expect(retryAfterMs(answer)).toBe(3_000);
  });

  test("has no body where the answer is no JSON", async () => {
    handler = (_, response) =>
      void response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found");
    expect(await client.request("GET", "/none")).toMatchObject({
      status: 404,
      body: undefined,
      text: "404 page not found",
    });
  });

  test("uses one connection again and again", async () => {
    const sockets = new Set<Socket>();
    handler = (request, response) => {
      sockets.add(request.socket);
      json(response, 200, {});
    };
    for (let i = 0; i < 5; i++) await client.request("GET", "/api");
    expect(sockets.size).toBe(1);
  });

  test("ends when its time is over, when its caller gives up, and when the connection breaks", async () => {
    handler = () => undefined;
    await expect(client.request("GET", "/api", { timeoutMs: 20 })).rejects.toThrow(
      "no whole answer within 20 ms",
    );
    await expect(client.request("GET", "/api", { signal: AbortSignal.abort() })).rejects.toThrow(
      ConnectionError,
    );
    const caller = new AbortController();
    const asked = client.request("GET", "/api", { signal: caller.signal });
    setTimeout(() => caller.abort(), 20);
    await expect(asked).rejects.toThrow("the caller gave up");
    handler = (request) => request.socket.destroy();
    await expect(client.request("POST", "/api", { body: {} })).rejects.toThrow(ConnectionError);
  });

  test("whose answer stops in the middle has no answer", async () => {
    handler = (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write("{");
      setTimeout(() => response.destroy(), 20);
    };
    await expect(client.request("GET", "/api")).rejects.toThrow(ConnectionError);
  });

  test("does not take in more than the limit", async () => {
    handler = (_, response) => json(response, 200, "x".repeat(1_000));
    await expect(open({ responseLimitBytes: 999 }).request("GET", "/api")).rejects.toThrow(TooLargeError);
    expect((await open({ responseLimitBytes: 1_002 }).request("GET", "/api")).status).toBe(200);
  });

  test("that was refused is sent again with new credentials, once, and only if they are new", async () => {
    const tokens: string[] = [];
    handler = (request, response, body) => {
      tokens.push(`${request.headers.authorization} ${body}`);
      json(response, request.headers.authorization === "Bearer good" ? 200 : 401, {});
    };
    expect((await client.request("POST", "/api", { body: 1 })).status).toBe(401);
    expect([tokens, renewals]).toEqual([["Bearer one 1"], 1]);
    next = "good";
    expect((await client.request("POST", "/api", { body: 2 })).status).toBe(200);
    expect(tokens.slice(1)).toEqual(["Bearer one 2", "Bearer good 2"]);
    next = "bad";
    token = "worse";
    expect((await client.request("POST", "/api", { body: 3 })).status).toBe(401);
    expect(tokens.slice(3)).toEqual(["Bearer worse 3", "Bearer bad 3"]);
  });
});

test("many that are refused together renew once, and are all sent again", async () => {
  const held: (() => void)[] = [];
  handler = (request, response) => {
    const good = request.headers.authorization === "Bearer good";
    const reply = (): void => json(response, good ? 200 : 401, {});
    // Some refusals come when others have long renewed.
    if (good || held.length >= 10) reply();
    else held.push(reply);
  };
  next = "good";
  const asked = Array.from({ length: 20 }, () => client.request("GET", "/api"));
  await Promise.all(asked.slice(10));
  for (const reply of held) reply();
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(renewals).toBe(1);
});

/** Passes connections on, and resets each the second time that something is asked on it: it had grown too old. */
async function agingProxy(): Promise<{ port: number; close: () => void }> {
  const proxy = createTcp((inner) => {
    const outer = connect((server.address() as AddressInfo).port, "127.0.0.1");
    let asked = 0;
    inner
      .on("error", () => outer.destroy())
      .on("data", (chunk) => {
        asked += 1;
        if (asked > 1) inner.resetAndDestroy();
        else outer.write(chunk);
      });
    outer.on("error", () => inner.destroy()).on("data", (chunk) => inner.write(chunk));
    inner.on("close", () => outer.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return { port: (proxy.address() as AddressInfo).port, close: () => proxy.close() };
}

test("a read is sent again where a kept connection turns out to be dead, a write is not", async () => {
  handler = (_, response) => json(response, 200, {});
  const proxy = await agingProxy();
  const through = createClient({ ...credentials(), server: `http://127.0.0.1:${proxy.port}` });
  expect((await through.request("GET", "/api")).status).toBe(200);
  expect((await through.request("GET", "/api")).status).toBe(200);
  await expect(through.request("POST", "/api", { body: {} })).rejects.toThrow(ConnectionError);
  through.close();
  proxy.close();
});

describe("one time for all", () => {
  /** A connection that was used before: what breaks on it may have died of old age. */
  async function kept(): Promise<void> {
    handler = (_, response) => json(response, 200, {});
    await client.request("GET", "/api");
  }

  test("a read that is not answered in time on a kept connection is not sent again", async () => {
    await kept();
    let asked = 0;
    handler = () => {
      asked += 1;
    };
    await expect(client.request("GET", "/api", { timeoutMs: 100 })).rejects.toThrow(
      "no whole answer within 100 ms",
    );
    expect(asked).toBe(1);
  });

  test("what is sent again has only the time that is left", async () => {
    await kept();
    let asked = 0;
    handler = (request) => {
      asked += 1;
      // A kept connection dies late, and the next one is silent.
      if (asked === 1) setTimeout(() => request.socket.destroy(), 300);
    };
    const timers = vi.spyOn(globalThis, "setTimeout");
    const limits = () => timers.mock.calls.map(([, ms = 0]) => ms).filter((ms) => ms > 300);
    const error = client.request("GET", "/api", { timeoutMs: 1_000 });
    await expect(error).rejects.toThrow("no whole answer within 1000 ms");
    const [whole = 0, left = Number.POSITIVE_INFINITY] = limits();
    timers.mockRestore();
    expect(asked).toBe(2);
    expect(left).toBeLessThanOrEqual(whole - 250);
  });

  test("a write whose time is over when the new credentials come is not sent with them", async () => {
    let asked = 0;
    handler = (_, response) => {
      asked += 1;
      json(response, 401, {});
    };
    next = "good";
    renewalMs = 400;
    const error = client.request("POST", "/api", { body: 1, timeoutMs: 300 });
    await expect(error).rejects.toThrow("no whole answer within 300 ms");
    expect([asked, renewals]).toEqual([1, 1]);
  });
});

test("refused when the credentials have gone: it is said why, at once, and no connection is held", async () => {
  const connections = new Set<Socket>();
  server.on("connection", (socket: Socket) => connections.add(socket));
  let asked = 0;
  handler = (_, response) => {
    asked += 1;
    without = new Error("the token file is gone");
    json(response, 401, { message: "x".repeat(100_000) });
  };
  for (let i = 0; i < 5; i++) {
    without = undefined;
    await expect(client.request("GET", "/api")).rejects.toThrow("the token file is gone");
    await sleep(20);
  }
  expect(asked).toBe(5);
  expect(connections.size).toBe(1);
});

test("what can't even be connected is a broken connection too", async () => {
  const agent = new SecureAgent({ cert: "none", key: "none" });
  const access = async () => ({ agent, headers: {} });
  const bad = createClient({ ...credentials(), server: "https://127.0.0.1:1", access });
  await expect(bad.request("GET", "/api")).rejects.toThrow(ConnectionError);
  agent.destroy();
});

test("a name and a password in the server's address are in no message", async () => {
  const { server: address } = credentials();
  without = new Error("none");
  const bad = createClient({ ...credentials(), server: address.replace("//", "//me:s3cret@") });
  expect(bad.server).toBe(address);
  await expect(bad.request("GET", "/api")).rejects.toThrow(`no credentials for ${address}: none`);
});

describe("a stream", () => {
  test("gives lines as they come, and ends with the server", async () => {
    handler = (_, response) => {
      response.write('{"a":1}\n{"b"');
      setTimeout(() => response.end(":2}\n"), 20);
    };
    const stream = await client.stream("/api?watch=true");
    expect(stream.status).toBe(200);
    expect(await collect(stream.lines)).toEqual(['{"a":1}', '{"b":2}']);
  });

  test("ends quietly where we close it, and with an error where it breaks", async () => {
    handler = (_, response) => void response.write("1\n");
    const closed = await client.stream("/api");
    const seen: string[] = [];
    for await (const line of closed.lines) {
      seen.push(line);
      closed.close();
    }
    expect(seen).toEqual(["1"]);
    const broken = await client.stream("/api");
    server.closeAllConnections();
    await expect(collect(broken.lines)).rejects.toThrow(ConnectionError);
  });

  test("ends with its caller's signal", async () => {
    handler = (_, response) => void response.write("1\n");
    const caller = new AbortController();
    const stream = await client.stream("/api", { signal: caller.signal });
    setTimeout(() => caller.abort(), 20);
    expect(await collect(stream.lines)).toEqual(["1"]);
  });

  test("that is refused has the refusal as its only line", async () => {
    handler = (_, response) => json(response, 410, { message: "too\nold" });
    const stream = await client.stream("/api");
    expect(stream.status).toBe(410);
    expect(await collect(stream.lines)).toEqual(['{"message":"too\\nold"}']);
  });

  test("outlives the time that an answer may take", async () => {
    handler = (_, response) => {
      response.write("1\n");
      setTimeout(() => response.end("2\n"), 150);
    };
    const stream = await open({ timeoutMs: 50 }).stream("/api");
    expect(await collect(stream.lines)).toEqual(["1", "2"]);
  });
});

describe("how long to wait", () => {
  test.each([
    [{ "retry-after": "2" }, {}, 2_000],
    [{}, { details: { retryAfterSeconds: 5 } }, 5_000],
    [{ "retry-after": "999999" }, {}, 60_000],
    [{ "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" }, {}, undefined],
    [{ "retry-after": "0" }, {}, undefined],
    [{}, undefined, undefined],
  ])("%j %j", (headers, body, expected) => {
    expect(retryAfterMs({ headers: headers as Record<string, string>, body })).toBe(expected);
  });
});

test("what nobody uses is let go, and what is in use goes on", async () => {
  const connections = new Set<Socket>();
  server.on("connection", (socket: Socket) => connections.add(socket));
  handler = (request, response) => {
    if (request.url === "/watch") response.write("{}\n");
    else response.end();
  };
  const watch = await client.stream("/watch");
  await client.request("GET", "/a");
  await client.request("GET", "/b");
  expect(connections.size).toBe(2);
  client.closeIdleConnections?.();
  await client.request("GET", "/c");
  expect(connections.size).toBe(3);
  for await (const line of watch.lines) {
    expect(line).toBe("{}");
    break;
  }
  watch.close();
});
