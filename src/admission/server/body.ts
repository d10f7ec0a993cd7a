import type { IncomingMessage } from "node:http";
import type { BytesInFlight } from "./bytes-in-flight.ts";
import type { InTurn } from "./large-reviews.ts";

/**
 * Bytes read of a body whose announced length is above the limit: enough for its envelope. The API server's envelope is
 * mostly the name of the user and its groups, which arrive in headers, for which Go's limit is 1 MiB.
 */
export const ENVELOPE_BYTES = 1024 * 1024;

/**
 * Collects the body of a request. For one that is longer than the limit `done` gets the first bytes and `false`, as
 * soon as that is known. `done` is called by `inTurn`, not at all if the client disconnects before, and must not keep
 * the body.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  inFlight: BytesInFlight,
  done: (body: Buffer, isWhole: boolean) => void,
  inTurn: InTurn = (work) => work(),
): void {
  const announced = Number(request.headers["content-length"] ?? Number.NaN);
  const most = announced > limit ? Math.min(limit, ENVELOPE_BYTES) : limit;
  const { socket } = request;
  // Most bodies arrive in one chunk, which then is the body: nothing is copied, and nothing is in flight.
  let body: Buffer = EMPTY;
  let length = 0;
  let counted = 0;
  const finish = (isWhole: boolean) => {
    request.removeListener("data", onData);
    request.removeListener("end", onEnd);
    inTurn(() => {
      inFlight.remove(socket, counted);
      done(body.subarray(0, length), isWhole);
      // The listeners live as long as the request, which may wait for facts.
      if (counted > 0) release(body);
      body = EMPTY;
    });
  };
  const onData = (chunk: Buffer) => {
    const fits = chunk.subarray(0, most - length);
    body = length === 0 ? fits : append(body, length, fits, Math.min(announced, most));
    length += fits.length;
    if (fits.length < chunk.length || (length === most && announced > most)) {
      finish(false);
      return;
    }
    if (length !== announced && body.length > counted) {
      inFlight.add(socket, body.length - counted);
      counted = body.length;
    }
  };
  const onEnd = () => finish(true);
  request.on("data", onData);
  request.on("end", onEnd);
}

/**
 * Copies a chunk behind the first bytes of a body, growing the buffer if necessary. Chunks are not kept: a chunk of one
 * byte takes some 300, so a body of 20 MiB could take gigabytes.
 */
function append(body: Buffer, length: number, chunk: Buffer, announced: number): Buffer {
  const needed = length + chunk.length;
  let room = body;
  if (needed > body.length) {
    // Doubles each time, so that every byte is copied once or twice; never more than announced.
    const double = Math.max(needed, 2 * body.length);
    room = Buffer.allocUnsafeSlow(announced >= needed ? Math.min(announced, double) : double);
    body.copy(room, 0, 0, length);
    release(body);
  }
  chunk.copy(room, length);
  return room;
}

/** Frees the memory of a buffer now, not with the next collection: V8 lets some 64 MB of such garbage accumulate. */
function release(buffer: Buffer): void {
  // A buffer that shares its memory with others must not be freed.
  if (buffer.buffer.byteLength === buffer.length && buffer.buffer instanceof ArrayBuffer)
    buffer.buffer.transfer(0);
}

const EMPTY = Buffer.alloc(0);
