import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ENVELOPE_BYTES, readBody } from "./body.ts";
import { BytesInFlight } from "./bytes-in-flight.ts";

const LIMIT = 1_000;

/** Reads a body that arrives in these pieces, and records the maximum bytes in flight. */
function read(pieces: readonly string[], headers: Record<string, string> = {}, limit = LIMIT) {
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
  const bodies: (string | { first: string })[] = [];
  readBody(request as unknown as IncomingMessage, limit, inFlight, (body, isWhole) =>
    bodies.push(isWhole ? body.toString() : { first: body.toString("latin1") }),
  );
  for (const piece of pieces) request.emit("data", Buffer.from(piece));
  request.emit("end");
  return { bodies, most };
}

test("joins its pieces, with or without an announced length", () => {
  const pieces = fc.array(fc.string({ minLength: 1, unit: "grapheme", maxLength: 20 }), { maxLength: 30 });
  fc.assert(
    fc.property(pieces, fc.boolean(), (parts, announced) => {
      const text = parts.join("");
      const length = Buffer.byteLength(text);
      const first = Buffer.from(text).toString("latin1", 0, LIMIT);
      const expected = length > LIMIT ? { first } : text;
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

test("a body above the limit is reported once, with its first bytes", () => {
  const first = "x".repeat(LIMIT);
  expect(read(["x".repeat(600), "x".repeat(600), "x"]).bodies).toEqual([{ first }]);
  expect(read(["x".repeat(LIMIT), "x"]).bodies).toEqual([{ first }]);
});

test("keeps only the size of an envelope if the announced length is too large", () => {
  const limit = 2 * ENVELOPE_BYTES;
  const chunk = "x".repeat(ENVELOPE_BYTES / 4);
  const { bodies, most } = read(Array(8).fill(chunk), { "content-length": String(limit + 1) }, limit);
  expect(bodies).toEqual([{ first: "x".repeat(ENVELOPE_BYTES) }]);
  expect(most).toBeLessThanOrEqual(ENVELOPE_BYTES);
});
