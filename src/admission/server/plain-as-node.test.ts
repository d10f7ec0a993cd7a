import { expect, test } from "vitest";
import { numbers } from "../../../test/support/admission/hostile-body.ts";
import {
  converse,
  inPieces,
  readByNode,
  request,
  serve,
} from "../../../test/support/admission/plain-connections.ts";

test("what is read the short way is answered as Node's way answers it, whatever comes and however it is cut", async () => {
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
