import { describe, expect, test } from "vitest";
import { respondJson, useHttpFixture } from "../../../test/support/cluster/http-fixture.ts";
import { ConnectionError } from "./client.ts";

const http = useHttpFixture();

async function collect(lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = [];
  for await (const line of lines) all.push(line);
  return all;
}

describe("a stream", () => {
  test("yields lines as they arrive, and ends with the server", async () => {
    http.handler = (_, response) => {
      response.write('{"a":1}\n{"b"');
      setTimeout(() => response.end(":2}\n"), 20);
    };
    const stream = await http.client.stream("/api?watch=true");
    expect(stream.status).toBe(200);
    expect(await collect(stream.lines)).toEqual(['{"a":1}', '{"b":2}']);
  });

  test("ends without an error when closed, and with one when it breaks", async () => {
    http.handler = (_, response) => void response.write("1\n");
    const closed = await http.client.stream("/api");
    const seen: string[] = [];
    for await (const line of closed.lines) {
      seen.push(line);
      closed.close();
    }
    expect(seen).toEqual(["1"]);
    const broken = await http.client.stream("/api");
    http.server.closeAllConnections();
    await expect(collect(broken.lines)).rejects.toThrow(ConnectionError);
  });

  test("ends on the caller's signal", async () => {
    http.handler = (_, response) => void response.write("1\n");
    const caller = new AbortController();
    const stream = await http.client.stream("/api", { signal: caller.signal });
    setTimeout(() => caller.abort(), 20);
    expect(await collect(stream.lines)).toEqual(["1"]);
  });

  test("has an error response as its only line", async () => {
    http.handler = (_, response) => respondJson(response, 410, { message: "too\nold" });
    const stream = await http.client.stream("/api");
    expect(stream.status).toBe(410);
    expect(await collect(stream.lines)).toEqual(['{"message":"too\\nold"}']);
  });

  test("outlives the request timeout", async () => {
    http.handler = (_, response) => {
      response.write("1\n");
      setTimeout(() => response.end("2\n"), 150);
    };
    const stream = await http.open({ timeoutMs: 50 }).stream("/api");
    expect(await collect(stream.lines)).toEqual(["1", "2"]);
  });
});
