import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import fc from "fast-check";
import { expect, test } from "vitest";
import { readBody, TOO_LARGE } from "./body.ts";
import { BytesInFlight } from "./bytes-in-flight.ts";

const LIMIT = 1_000;

/** Reads a body that arrives in these pieces, and notes the most bytes that were in flight. */
function read(pieces: readonly string[], headers: Record<string, string> = {}) {
  const socket = Object.assign(new EventEmitter(), { destroy: () => undefined });
  const request = Object.assign(new EventEmitter(), { headers, socket });
  let most = 0;
  let bytes = 0;
  const inFlight = new (class extends BytesInFlight {
    override add(...args: Parameters<BytesInFlight["add"]>): void {
      super.add(...args);
      bytes += args[1];
      most = Math.max(most, bytes);
    }
  })(1_000_000, () => undefined);
  const bodies: (string | typeof TOO_LARGE)[] = [];
  readBody(request as unknown as IncomingMessage, LIMIT, inFlight, (body) =>
    bodies.push(body === TOO_LARGE ? body : body.toString()),
  );
  for (const piece of pieces) request.emit("data", Buffer.from(piece));
  request.emit("end");
  return { bodies, most };
}

test("a body is what its pieces are together, whether its length is announced or not", () => {
  const pieces = fc.array(fc.string({ minLength: 1, unit: "grapheme", maxLength: 20 }), { maxLength: 30 });
  fc.assert(
    fc.property(pieces, fc.boolean(), (parts, announced) => {
      const text = parts.join("");
      const length = Buffer.byteLength(text);
      const expected = length > LIMIT ? TOO_LARGE : text;
      const headers: Record<string, string> = announced ? { "content-length": String(length) } : {};
      expect(read(parts, headers).bodies).toEqual([expected]);
    }),
  );
});

test("a body in one piece is not in flight", () => {
  expect(read(["x".repeat(500)], { "content-length": "500" })).toEqual({
    bodies: ["x".repeat(500)],
    most: 0,
  });
});

test("pieces of one byte take at most twice their bytes", () => {
  const { bodies, most } = read([..."x".repeat(LIMIT)]);
  expect(bodies).toEqual(["x".repeat(LIMIT)]);
  expect(most).toBeLessThanOrEqual(2 * LIMIT);
});

test("a body above the limit is reported once", () => {
  expect(read(["x".repeat(600), "x".repeat(600), "x"]).bodies).toEqual([TOO_LARGE]);
  expect(read([], { "content-length": "1001" }).bodies).toEqual([TOO_LARGE]);
});
