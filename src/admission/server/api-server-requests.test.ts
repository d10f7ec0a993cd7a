import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  bodyOf,
  exchange,
  inPieces,
  request,
  serve,
  uids,
} from "../../../test/support/admission/raw-connections.ts";
import { type Log, SILENT } from "../../core/log.ts";
import type { AdmissionServer } from "../admission-server.ts";

describe.concurrent("requests of API servers", () => {
  let server: AdmissionServer;
  beforeAll(async () => {
    server = await serve();
  });
  afterAll(() => server.close());

  test("are answered in sequence on one connection, which then times out idle", async () => {
    const got = await exchange(server, async (socket) => {
      for (const uid of ["one", "two", "three"]) {
        socket.write(request(uid));
        await new Promise((resolve) => socket.once("data", resolve));
      }
    });
    expect(uids(got)).toEqual(["one", "two", "three"]);
    const [head = "", body = ""] = got.split("\r\n\r\n");
    expect(head.split("\r\n").map((line) => line.replace(/^(Date|Content-Length): .*/, "$1"))).toEqual([
      "HTTP/1.1 200 OK",
      "Content-Type: application/json",
      "Content-Length",
      "Date",
      "Connection: keep-alive",
      "Keep-Alive: timeout=1",
    ]);
    expect(Number(/Content-Length: (\d+)/.exec(head)?.[1])).toBe(body.indexOf("HTTP/1.1"));
    expect(Math.abs(Date.parse(/Date: (.*)/.exec(head)?.[1] ?? "") - Date.now())).toBeLessThan(10_000);
  });

  test("may arrive in pieces, with head and body cut anywhere", async () => {
    const text = request("cut");
    const start = text.indexOf("\r\n\r\n") + 4;
    const cuts = [1, 60, start - 3, start, start + 1, Math.floor((start + text.length) / 2), text.length - 1];
    const all = await Promise.all(
      cuts.map((cut) =>
        exchange(server, (socket) => inPieces(socket, [text.slice(0, cut), text.slice(cut)])),
      ),
    );
    for (const got of all) expect(uids(got)).toEqual(["cut"]);
  });

  test("may be large", async () => {
    const got = await exchange(server, (socket) => socket.write(request("large", { pad: 150_000 })));
    expect(uids(got)).toEqual(["large"]);
  });

  test("get text beyond ASCII with its length in bytes", async () => {
    const body = Buffer.from(bodyOf("ünï-✓-😀"));
    const head = request("")
      .split("\r\n\r\n")[0]
      ?.replace(/Length: \d+/, `Length: ${body.length}`);
    const got = await exchange(server, (socket) =>
      socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body])),
    );
    const [answer = "", answered = ""] = got.split("\r\n\r\n");
    expect(Buffer.from(answered, "latin1").toString()).toContain("ünï-✓-😀");
    expect(Number(/Content-Length: (\d+)/.exec(answer)?.[1])).toBe(answered.length);
  });

  test("get an error that names the problem", async () => {
    expect(await exchange(server, (socket) => socket.write(request("x", { path: "/nowhere" })))).toMatch(
      /^HTTP\/1.1 404 Not Found\r\n/,
    );
    const empty = request("x")
      .split("\r\n\r\n")[0]
      ?.replace(/Length: \d+/, "Length: 0");
    expect(await exchange(server, (socket) => socket.write(`${empty}\r\n\r\n`))).toMatch(
      /^HTTP\/1.1 400 Bad Request\r\n/,
    );
  });

  test("two pipelined ones are both answered, in order", async () => {
    const got = await exchange(server, (socket) => socket.write(request("one") + request("two")));
    expect(uids(got)).toEqual(["one", "two"]);
  });

  test("half of one times out, as does silence", async () => {
    const half = request("half").slice(0, -10);
    const answers = await Promise.all([
      exchange(server, (socket) => socket.write(half)),
      exchange(server, () => undefined),
    ]);
    for (const got of answers) expect(got).toBe("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n");
  });

  test("a body whose announced length is too large is evaluated by its first bytes", async () => {
    const text = request("x", { pad: 190_000 }).replace(/Length: \d+/, "Length: 200001");
    const got = await exchange(server, (socket) => socket.write(text + " ".repeat(10_000)));
    expect(got).toMatch(/^HTTP\/1.1 200 /);
    expect(got).toMatch(/"code":413/);
  });
});

test.concurrent("an internal error is answered as one and logged", async () => {
  const said: string[] = [];
  const log: Log = { ...SILENT, error: (_, message) => said.push(message) };
  const server = await serve({
    log,
    effects: () => undefined,
    now: () => {
      throw new Error("no clock");
    },
  });
  const got = await exchange(server, (socket) => socket.write(request("x")));
  expect(got).toMatch(/USHER-E01/);
  expect(said).not.toEqual([]);
  await server.close();
});
