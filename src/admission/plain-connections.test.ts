import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allow } from "../core/decision.ts";
import { type Log, SILENT } from "../core/log.ts";
import type { Deadline } from "../core/source.ts";
import { numbers } from "./fuzz.ts";
import { type AdmissionOptions, type AdmissionServer, startAdmission } from "./server.ts";
import { review, testModule, testSource } from "./test-cluster.ts";

/** Short, so that every connection ends by itself. */
const LIMITS = { bodyBytes: 200_000, headersMs: 400, requestMs: 600, keepAliveMs: 500, checkEveryMs: 50 };

function serve(options: Partial<AdmissionOptions> = {}): Promise<AdmissionServer> {
  return startAdmission({
    source: testSource(),
    log: SILENT,
    port: 0,
    opsPort: 0,
    limits: LIMITS,
    ...options,
  });
}

const bodyOf = (uid: string, pad = 0) => JSON.stringify(review({ uid })).padEnd(pad);

function request(uid: string, { path = "/validate/welcome", pad = 0, lines = [] as string[] } = {}): string {
  const body = bodyOf(uid, pad);
  const head = [
    `POST ${path}?timeout=5s HTTP/1.1`,
    "Host: usher",
    "User-Agent: kube-apiserver-admission",
    `Content-Length: ${body.length}`,
    "Content-Type: application/json",
    "Accept-Encoding: gzip",
    ...lines,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** All that comes back until the connection ends, which it does by itself. */
function converse(server: AdmissionServer, play: (socket: TLSSocket) => unknown): Promise<string> {
  const { host, port } = server.webhookAddress;
  return new Promise((resolve) => {
    let got = "";
    const socket = connect({ host, port, ca: server.ca }, () => void play(socket));
    socket.setEncoding("latin1");
    socket.on("data", (text) => {
      got += text;
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(got));
  });
}

/** Each piece as a write of its own, so that it comes as one, or nearly always. */
async function inPieces(socket: TLSSocket, pieces: readonly (string | Buffer)[]): Promise<void> {
  socket.setNoDelay(true);
  for (const piece of pieces) {
    if (socket.destroyed) return;
    socket.write(piece, "latin1");
    await pause(2);
  }
}

const uids = (got: string) => [...got.matchAll(/"uid":"([\w-]+)"/g)].map((match) => match[1]);

/** Only Node tells how long it keeps a connection. */
const readByNode = (got: string) => /\r\nKeep-Alive: /.test(got);

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

test.concurrent("what is read the short way is answered as Node's way answers it, whatever comes and however it is cut", async () => {
  const [short, node] = await Promise.all([serve(), serve({ plain: false })]);
  try {
    const next = numbers(20_261_116);
    const streams = Array.from({ length: 250 }, (_, i) => pieces(mutated(i, next), next));
    const both = await Promise.all(
      streams.map((stream) =>
        Promise.all([short, node].map((server) => converse(server, (socket) => inPieces(socket, stream)))),
      ),
    );
    const plain = both
      .map(([got = ""]) => got)
      .filter((got) => got.startsWith("HTTP/1.1 200") && !readByNode(got));
    // Else this would compare Node with itself.
    expect(plain.length).toBeGreaterThan(30);
    for (const [i, [one = "", other = ""]] of both.entries()) {
      const stream = streams[i]?.join("");
      // Node breaks off for what is no HTTP, and forgets to answer the request before it if both came at once. We have answered it.
      if (other === BROKEN_OFF)
        expect({ stream, got: bared(one).match(/HTTP\/1.1 /g) }).toMatchObject({ got: ["HTTP/1.1 "] });
      else expect({ stream, got: bared(one) }).toEqual({ stream, got: bared(other) });
    }
  } finally {
    await Promise.all([short.close(), node.close()]);
  }
});

const BROKEN_OFF = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";

/** Without what differs between the two ways and means nothing. */
function bared(got: string): string {
  const text = got.replace(/\r\n(Date|Keep-Alive|Connection: keep-alive).*/g, "");
  // Whether Node says of no HTTP behind an answer that it is none depends on how the bytes came.
  return text.length > BROKEN_OFF.length && text.endsWith(BROKEN_OFF)
    ? text.slice(0, -BROKEN_OFF.length)
    : text;
}

const HEADERS = [
  "Connection: keep-alive",
  "X-A: b",
  "Content-Length: 3",
  "Transfer-Encoding: chunked",
  "Expect: 100-continue",
  "X-A : b",
  "Host: b",
];

/** One or two requests, mostly with something wrong. */
function mutated(i: number, next: (below: number) => number): string {
  const lines = next(3) === 0 ? [HEADERS[next(HEADERS.length)] ?? ""] : [];
  let text = request(`a${i}`, { lines }) + (next(4) === 0 ? request(`b${i}`) : "");
  for (let times = next(3); times > 0; times--) {
    // The heads are where the two ways could differ; bodies have a test of their own.
    const at = next(next(4) === 0 ? text.length : 260);
    text = text.slice(0, at) + String.fromCharCode(next(128)) + text.slice(at + next(2));
  }
  return text;
}

function pieces(text: string, next: (below: number) => number): string[] {
  const cuts = Array.from({ length: Math.max(0, next(5) - 2) }, () => next(text.length)).sort(
    (a, b) => a - b,
  );
  return [0, ...cuts]
    .map((from, i) => text.slice(from, cuts[i] ?? text.length))
    .filter((piece) => piece !== "");
}

/** A server whose needs are never met, until they are. */
async function waiting(options: Partial<AdmissionOptions> = {}) {
  const asked: Deadline[] = [];
  const { promise: met, resolve: meet } = Promise.withResolvers<void>();
  const server = await serve({
    source: testSource({
      fetch: async (needs, deadline) => {
        asked.push(deadline);
        await met;
        return needs.map(() => ({ found: {}, complete: true }));
      },
    }),
    ...options,
  });
  return { server, asked, meet };
}

const slow = (uid: string) => request(uid, { path: "/validate/pool" });

test.concurrent("a caller that is gone is not worked for any more", async () => {
  const { server, asked } = await waiting();
  await converse(server, async (socket) => {
    socket.write(slow("gone"));
    await expect.poll(() => asked.length).toBe(1);
    expect(asked[0]?.signal.aborted).toBe(false);
    socket.destroy();
  });
  await expect.poll(() => asked[0]?.signal.aborted).toBe(true);
  await server.close();
});

test.concurrent("a request that comes while another is being answered waits for its turn", async () => {
  const { server, asked, meet } = await waiting();
  const got = await converse(server, async (socket) => {
    socket.write(slow("first"));
    await expect.poll(() => asked.length).toBe(1);
    socket.write(request("second"));
    await pause(50);
    meet();
  });
  expect(uids(got)).toEqual(["first", "second"]);
  await server.close();
});

test.concurrent("whoever floods while being answered is cut off", async () => {
  const { server, asked, meet } = await waiting();
  const got = await converse(server, async (socket) => {
    socket.write(slow("first"));
    await expect.poll(() => asked.length).toBe(1);
    socket.write(" ".repeat(100_000));
  });
  expect(got).toBe("");
  meet();
  await server.close();
});

test.concurrent("a drain closes idle connections, answers what is under way and says goodbye with it", async () => {
  const { server, asked, meet } = await waiting({ limits: { ...LIMITS, keepAliveMs: 60_000 } });
  let drained: Promise<void> | undefined;
  const idle = converse(server, (socket) => socket.write(request("idle")));
  const busy = converse(server, async (socket) => {
    socket.write(slow("busy"));
    await expect.poll(() => asked.length).toBe(1);
    drained = server.drain({ serveOnMs: 0 });
    expect(uids(await idle)).toEqual(["idle"]);
    meet();
  });
  const got = await busy;
  expect(uids(got)).toEqual(["busy"]);
  expect(got).toMatch(/\r\nConnection: close\r\n/);
  await drained;
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

/** A server whose answers are too large to be handed to the network at once. */
function verbose(options: Partial<AdmissionOptions> = {}): Promise<AdmissionServer> {
  const module = testModule({
    big: {
      phase: "mutate",
      judge: ({ object }) => {
        object.set(["metadata", "annotations", "big"], "x".repeat(4_000_000), undefined);
        return allow();
      },
    },
    welcome: { phase: "validate", judge: () => allow() },
  });
  return serve({ source: testSource({}, module), ...options });
}

test.concurrent("what comes behind a large answer that nobody reads yet keeps its place", async () => {
  const server = await verbose();
  const second = request("two");
  const got = await converse(server, async (socket) => {
    socket.pause();
    socket.write(request("one", { path: "/mutate/big" }) + second.slice(0, 300));
    await pause(200);
    socket.write(second.slice(300) + request("three"));
    await pause(100);
    socket.resume();
  });
  expect(uids(got)).toEqual(["one", "two", "three"]);
  await server.close();
});

test.concurrent("a drain does not wait for those who do not hang up", async () => {
  const { server, asked, meet } = await waiting({
    limits: { ...LIMITS, keepAliveMs: 60_000, finishMs: 60_000 },
  });
  const { host, port } = server.webhookAddress;
  const stubborn = { host, port, ca: server.ca, allowHalfOpen: true };
  const socket = connect(stubborn, () => socket.write(slow("busy")));
  await expect.poll(() => asked.length).toBe(1);
  const drained = server.drain({ serveOnMs: 0 });
  // The door is closed by then, and what was idle has been ended.
  await pause(200);
  meet();
  let got = "";
  socket.on("data", (chunk) => {
    got += chunk;
  });
  await drained;
  expect(uids(got)).toEqual(["busy"]);
  socket.destroy();
});

test.concurrent("whoever never reads is let go, and costs nothing meanwhile", async () => {
  const warned: string[] = [];
  const note = ({ name }: Error) => warned.push(name);
  process.on("warning", note);
  const server = await verbose({ limits: { ...LIMITS, keepAliveMs: 200, checkEveryMs: 20 } });
  const { host, port } = server.webhookAddress;
  const socket = connect({ host, port, ca: server.ca }, () => {
    socket.pause();
    socket.write(request("one", { path: "/mutate/big" }));
  });
  socket.on("error", () => undefined);
  await pause(1_500);
  process.off("warning", note);
  expect(warned).toEqual([]);
  socket.destroy();
  await server.close();
});
