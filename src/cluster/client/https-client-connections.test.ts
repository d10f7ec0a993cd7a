import { once } from "node:events";
import { type AddressInfo, connect, createServer as createTcp, type Socket } from "node:net";
import { describe, expect, test, vi } from "vitest";
import { portOf, respondJson, useHttpFixture } from "../../../test/support/cluster/http-fixture.ts";
import { ConnectionError } from "./client.ts";
import { createClient } from "./https-client.ts";

const http = useHttpFixture();

/** Forwards connections, and resets each at its second request, like a server that closes idle connections. */
async function agingProxy(): Promise<{ port: number; close: () => void }> {
  const proxy = createTcp((inner) => {
    const outer = connect(portOf(http.server), "127.0.0.1");
    let requests = 0;
    inner
      .on("error", () => outer.destroy())
      .on("data", (chunk) => {
        requests += 1;
        if (requests > 1) inner.resetAndDestroy();
        else outer.write(chunk);
      });
    outer.on("error", () => inner.destroy()).on("data", (chunk) => inner.write(chunk));
    inner.on("close", () => outer.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  return { port: (proxy.address() as AddressInfo).port, close: () => proxy.close() };
}

test("repeats a read when a kept connection turns out to be dead, but not a write", async () => {
  http.handler = (_, response) => respondJson(response, 200, {});
  const proxy = await agingProxy();
  const through = createClient({ ...http.credentials(), server: `http://127.0.0.1:${proxy.port}` });
  expect((await through.request("GET", "/api")).status).toBe(200);
  expect((await through.request("GET", "/api")).status).toBe(200);
  await expect(through.request("POST", "/api", { body: {} })).rejects.toThrow(ConnectionError);
  through.close();
  proxy.close();
});

describe("one deadline for all attempts", () => {
  /** Leaves a kept connection: if it breaks now, it may have been closed while idle. */
  async function kept(): Promise<void> {
    http.handler = (_, response) => respondJson(response, 200, {});
    await http.client.request("GET", "/api");
  }

  test("a read that times out on a new connection is not repeated", async () => {
    let requests = 0;
    http.handler = () => {
      requests += 1;
    };
    await expect(http.client.request("GET", "/api", { timeoutMs: 100 })).rejects.toThrow(
      "no complete response within 100 ms",
    );
    expect(requests).toBe(1);
  });

  test("an urgent read is sent again on a new connection when kept ones are silent", async () => {
    await kept();
    const connections: unknown[] = [];
    http.handler = ({ socket }, response) => {
      connections.push(socket);
      if (connections.length > 1) respondJson(response, 200, {});
    };
    expect((await http.client.request("GET", "/api", { timeoutMs: 1_000 })).status).toBe(200);
    expect(new Set(connections).size).toBe(2);
  });

  test.each([
    ["a write", "POST", 100],
    ["a read without time pressure", "GET", 20_000],
  ])("%s is not sent again on a silent connection", async (_, method, timeoutMs) => {
    await kept();
    let requests = 0;
    http.handler = () => {
      requests += 1;
    };
    const signal = AbortSignal.timeout(300);
    await expect(http.client.request(method, "/api", { timeoutMs, signal })).rejects.toThrow(ConnectionError);
    expect(requests).toBe(1);
  });

  test("a repeated request has the remaining time only", async () => {
    await kept();
    let requests = 0;
    http.handler = (request) => {
      requests += 1;
      // The kept connection breaks late, and the next one never answers.
      if (requests === 1) setTimeout(() => request.socket.destroy(), 300);
    };
    const timers = vi.spyOn(globalThis, "setTimeout");
    const limits = () => timers.mock.calls.map(([, ms = 0]) => ms).filter((ms) => ms > 300);
    const error = http.client.request("GET", "/api", { timeoutMs: 1_000 });
    await expect(error).rejects.toThrow("no complete response within 1000 ms");
    const [whole = 0, left = Number.POSITIVE_INFINITY] = limits();
    timers.mockRestore();
    expect(requests).toBe(2);
    expect(left).toBeLessThanOrEqual(whole - 250);
  });

  test("a write is not repeated when renewing credentials took longer than its timeout", async () => {
    let requests = 0;
    http.handler = (_, response) => {
      requests += 1;
      respondJson(response, 401, {});
    };
    http.nextToken = "good";
    http.renewalMs = 400;
    const error = http.client.request("POST", "/api", { body: 1, timeoutMs: 300 });
    await expect(error).rejects.toThrow("no complete response within 300 ms");
    expect([requests, http.renewals]).toEqual([1, 1]);
  });
});

test("closes idle connections, and keeps those in use", async () => {
  const connections = new Set<Socket>();
  http.server.on("connection", (socket: Socket) => connections.add(socket));
  http.handler = (request, response) => {
    if (request.url === "/watch") response.write("{}\n");
    else response.end();
  };
  const watch = await http.client.stream("/watch");
  await http.client.request("GET", "/a");
  await http.client.request("GET", "/b");
  expect(connections.size).toBe(2);
  http.client.closeIdleConnections?.();
  await http.client.request("GET", "/c");
  expect(connections.size).toBe(3);
  for await (const line of watch.lines) {
    expect(line).toBe("{}");
    break;
  }
  watch.close();
});
