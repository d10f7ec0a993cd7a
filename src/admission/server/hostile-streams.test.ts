import { expect, test } from "vitest";
import { numbers } from "../../../test/support/admission/hostile-body.ts";
import { exchange, inPieces, request, serve, uids } from "../../../test/support/admission/raw-connections.ts";

const STREAMS = 250;

test("mutated requests, cut anywhere, are refused or answered once and in order, and the server keeps serving", async () => {
  const server = await serve();
  try {
    const next = numbers(20_261_116);
    const streams = Array.from({ length: STREAMS }, (_, i) => pieces(mutated(i, next), next));
    const all = await Promise.all(
      streams.map((stream) => exchange(server, (socket) => inPieces(socket, stream))),
    );
    for (const [i, got] of all.entries()) {
      const stream = streams[i]?.join("");
      const statuses = [...got.matchAll(/HTTP\/1\.1 (\d+) /g)].map((match) => match[1]);
      for (const status of statuses)
        expect({ stream, status }).toEqual({ stream, status: expect.stringMatching(STATUS) });
      // Two requests and the refusal of the rest.
      expect({ stream, statuses: statuses.length <= 3 }).toEqual({ stream, statuses: true });
      const answered = uids(got);
      expect({ stream, answered }).toEqual({ stream, answered: [...answered].sort() });
      expect({ stream, answered: new Set(answered).size }).toEqual({ stream, answered: answered.length });
    }
    // Otherwise only refusals would have been tested.
    expect(all.filter((got) => uids(got).length > 0).length).toBeGreaterThan(30);
    expect(uids(await exchange(server, (socket) => socket.write(request("after"))))).toEqual(["after"]);
  } finally {
    await server.close();
  }
});

/** Informational responses, those of the webhook, and refusals: never a server error. */
const STATUS = /^(100|200|4\d\d)$/;

const HEADERS = [
  "Connection: keep-alive",
  "X-A: b",
  "Content-Length: 3",
  "Transfer-Encoding: chunked",
  "Expect: 100-continue",
  "X-A : b",
  "Host: b",
];

/** One or two requests, most of them malformed. */
function mutated(i: number, next: (below: number) => number): string {
  const lines = next(3) === 0 ? [HEADERS[next(HEADERS.length)] ?? ""] : [];
  let text = request(`a${i}`, { lines }) + (next(4) === 0 ? request(`b${i}`) : "");
  for (let times = next(3); times > 0; times--) {
    // Mostly in the heads; bodies have a separate test.
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
