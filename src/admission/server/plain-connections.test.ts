import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  bodyOf,
  converse,
  inPieces,
  readByNode,
  request,
  serve,
  uids,
} from "../../../test/support/admission/plain-connections.ts";
import { type Log, SILENT } from "../../core/log.ts";
import type { AdmissionServer } from "./admission-server.ts";

describe.concurrent("requests as API servers send them", () => {
  let server: AdmissionServer;
  beforeAll(async () => {
    server = await serve();
  });
  afterAll(() => server.close());

  test("are answered one after the other on one connection, which then ends for idleness", async () => {
    const got = await converse(server, async (socket) => {
      for (const uid of ["one", "two", "three"]) {
        socket.write(request(uid));
        await new Promise((resolve) => socket.once("data", resolve));
      }
    });
    expect(uids(got)).toEqual(["one", "two", "three"]);
    expect(readByNode(got)).toBe(false);
    const [head = "", body = ""] = got.split("\r\n\r\n");
    expect(head.split("\r\n").map((line) => line.replace(/^(Date|Content-Length): .*/, "$1"))).toEqual([
      "HTTP/1.1 200 OK",
      "Content-Type: application/json",
      "Content-Length",
      "Date",
      "Connection: keep-alive",
    ]);
    expect(Number(/Content-Length: (\d+)/.exec(head)?.[1])).toBe(body.indexOf("HTTP/1.1"));
    expect(Math.abs(Date.parse(/Date: (.*)/.exec(head)?.[1] ?? "") - Date.now())).toBeLessThan(10_000);
  });

  test("may come in pieces, wherever their body is cut", async () => {
    const text = request("cut");
    const start = text.indexOf("\r\n\r\n") + 4;
    const cuts = [start, start + 1, Math.floor((start + text.length) / 2), text.length - 1];
    const all = await Promise.all(
      cuts.map((cut) =>
        converse(server, (socket) => inPieces(socket, [text.slice(0, cut), text.slice(cut)])),
      ),
    );
    for (const got of all) {
      expect(uids(got)).toEqual(["cut"]);
      expect(readByNode(got)).toBe(false);
    }
  });

  test("may be large", async () => {
    const got = await converse(server, (socket) => socket.write(request("large", { pad: 150_000 })));
    expect(uids(got)).toEqual(["large"]);
    expect(readByNode(got)).toBe(false);
  });

  test("get text beyond ASCII with its length in bytes", async () => {
    const body = Buffer.from(bodyOf("ünï-✓-😀"));
    const head = request("")
      .split("\r\n\r\n")[0]
      ?.replace(/Length: \d+/, `Length: ${body.length}`);
    const got = await converse(server, (socket) =>
      socket.write(Buffer.concat([Buffer.from(`${head}\r\n\r\n`), body])),
    );
    const [answer = "", answered = ""] = got.split("\r\n\r\n");
    expect(Buffer.from(answered, "latin1").toString()).toContain("ünï-✓-😀");
    expect(Number(/Content-Length: (\d+)/.exec(answer)?.[1])).toBe(answered.length);
  });

  test("are told what is wrong with them", async () => {
    expect(await converse(server, (socket) => socket.write(request("x", { path: "/nowhere" })))).toMatch(
      /^HTTP\/1.1 404 Not Found\r\n/,
    );
    const empty = request("x")
      .split("\r\n\r\n")[0]
      ?.replace(/Length: \d+/, "Length: 0");
    expect(await converse(server, (socket) => socket.write(`${empty}\r\n\r\n`))).toMatch(
      /^HTTP\/1.1 400 Bad Request\r\n/,
    );
  });

  test("go over to Node with the first that is different, and nothing is lost", async () => {
    const different = request("two", { lines: ["Connection: keep-alive"] });
    const got = await converse(server, async (socket) => {
      socket.write(request("one"));
      await new Promise((resolve) => socket.once("data", resolve));
      await inPieces(socket, [different.slice(0, 100), different.slice(100, 500), different.slice(500)]);
      await pause(20);
      socket.write(request("three"));
    });
    expect(uids(got)).toEqual(["one", "two", "three"]);
    expect(readByNode(got)).toBe(true);
  });

  test("a head in two pieces is Node's", async () => {
    const text = request("halved");
    const got = await converse(server, (socket) => inPieces(socket, [text.slice(0, 60), text.slice(60)]));
    expect(uids(got)).toEqual(["halved"]);
    expect(readByNode(got)).toBe(true);
  });

  test("two at once are answered both, in order", async () => {
    const got = await converse(server, (socket) => socket.write(request("one") + request("two")));
    expect(uids(got)).toEqual(["one", "two"]);
  });

  test("half of one is cut off in time, as is silence", async () => {
    const half = request("half").slice(0, -10);
    const answers = await Promise.all([
      converse(server, (socket) => socket.write(half)),
      converse(server, () => undefined),
    ]);
    for (const got of answers) expect(got).toBe("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n");
  });

  test("a body that is announced too large is refused unread", async () => {
    const text = request("x").replace(/Length: \d+/, "Length: 200001");
    expect(await converse(server, (socket) => socket.write(text))).toMatch(/^HTTP\/1.1 413 /);
  });
});

test.concurrent("a fault of ours is answered as one and told in the log", async () => {
  const said: string[] = [];
  const log: Log = { ...SILENT, error: (_, message) => said.push(message) };
  const server = await serve({
    log,
    effects: () => undefined,
    now: () => {
      throw new Error("no clock");
    },
  });
  const got = await converse(server, (socket) => socket.write(request("x")));
  expect(got).toMatch(/USHER-E01/);
  expect(said).not.toEqual([]);
  await server.close();
});
