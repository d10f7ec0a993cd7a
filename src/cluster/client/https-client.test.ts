import type { IncomingMessage } from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { respondJson, useHttpFixture } from "../../../test/support/cluster/http-fixture.ts";
import { retryAfterMs } from "./api-response.ts";
import { ConnectionError } from "./client.ts";
import { createClient } from "./https-client.ts";
import { TooLargeError } from "./response-body.ts";

const http = useHttpFixture();

describe("a request", () => {
  test("carries credentials and content type, and accepts no compression", async () => {
    let seen: IncomingMessage["headers"] = {};
    http.handler = (request, response, body) => {
      seen = request.headers;
      respondJson(response, 201, { method: request.method, url: request.url, body: JSON.parse(body) });
    };
    const contentType = "application/merge-patch+json";
    const response = await http.client.request("PATCH", "/api/v1/x?a=b", { body: { a: "ä" }, contentType });
    expect(response).toMatchObject({
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

  test("keeps the path prefix of the server's address", async () => {
    http.handler = (request, response) => respondJson(response, 200, request.url);
    const behind = createClient(http.credentials("/k8s/clusters/c-1/"));
    expect((await behind.request("GET", "/api")).body).toBe("/k8s/clusters/c-1/api");
    behind.close();
  });

  test("resolves with error responses too, and their Retry-After", async () => {
    http.handler = (_, response) =>
      respondJson(response, 429, { message: "slow down" }, { "retry-after": "3" });
    const response = await http.client.request("GET", "/api");
    expect(response).toMatchObject({ status: 429, body: { message: "slow down" } });
    expect(retryAfterMs(response)).toBe(3_000);
  });

  test("has no body if the response is not JSON", async () => {
    http.handler = (_, response) =>
      void response.writeHead(404, { "content-type": "text/plain" }).end("404 page not found");
    expect(await http.client.request("GET", "/none")).toMatchObject({
      status: 404,
      body: undefined,
      text: "404 page not found",
    });
  });

  test("reuses its connection", async () => {
    const sockets = new Set<Socket>();
    http.handler = (request, response) => {
      sockets.add(request.socket);
      respondJson(response, 200, {});
    };
    for (let i = 0; i < 5; i++) await http.client.request("GET", "/api");
    expect(sockets.size).toBe(1);
  });

  test("ends at its timeout, on the caller's signal, and when the connection breaks", async () => {
    http.handler = () => undefined;
    await expect(http.client.request("GET", "/api", { timeoutMs: 20 })).rejects.toThrow(
      "no complete response within 20 ms",
    );
    await expect(http.client.request("GET", "/api", { signal: AbortSignal.abort() })).rejects.toThrow(
      ConnectionError,
    );
    const caller = new AbortController();
    const requests = http.client.request("GET", "/api", { signal: caller.signal });
    setTimeout(() => caller.abort(), 20);
    await expect(requests).rejects.toThrow("canceled by the caller");
    http.handler = (request) => request.socket.destroy();
    await expect(http.client.request("POST", "/api", { body: {} })).rejects.toThrow(ConnectionError);
  });

  test("rejects if the response stops in the middle", async () => {
    http.handler = (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" });
      response.write("{");
      setTimeout(() => response.destroy(), 20);
    };
    await expect(http.client.request("GET", "/api")).rejects.toThrow(ConnectionError);
  });

  test("rejects responses over the limit", async () => {
    http.handler = (_, response) => respondJson(response, 200, "x".repeat(1_000));
    await expect(http.open({ responseLimitBytes: 999 }).request("GET", "/api")).rejects.toThrow(
      TooLargeError,
    );
    expect((await http.open({ responseLimitBytes: 1_002 }).request("GET", "/api")).status).toBe(200);
  });
});

test("a connection that can't be started is a ConnectionError", async () => {
  const agent = new SecureAgent({ cert: "none", key: "none" });
  const access = async () => ({ agent, headers: {} });
  const bad = createClient({ ...http.credentials(), server: "https://127.0.0.1:1", access });
  await expect(bad.request("GET", "/api")).rejects.toThrow(ConnectionError);
  agent.destroy();
});

test("no error contains the user and password in the server's address", async () => {
  const { server: address } = http.credentials();
  http.credentialsError = new Error("none");
  const bad = createClient({ ...http.credentials(), server: address.replace("//", "//me:s3cret@") });
  expect(bad.server).toBe(address);
  await expect(bad.request("GET", "/api")).rejects.toThrow(`no credentials for ${address}: none`);
});
