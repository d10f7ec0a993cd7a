import type { IncomingMessage } from "node:http";
import type { Sender, UnfinishedBodies } from "./unfinished-bodies.ts";

/** A body that is longer than the limit. */
export const TOO_LARGE = Symbol("too large");

/**
 * Collects the body of a request, or reports that it is too large as soon as that is known: at once where the length is announced,
 * else with the chunk that exceeds the limit. `done` is not called where the client disconnects.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  unfinished: UnfinishedBodies,
  done: (body: Buffer | typeof TOO_LARGE) => void,
): void {
  const announced = Number(request.headers["content-length"] ?? Number.NaN);
  if (announced > limit) {
    done(TOO_LARGE);
    return;
  }
  // Most bodies arrive in one chunk, and that chunk is then the body: nothing is copied, and nothing is unfinished.
  let first: Buffer | undefined;
  let rest: Buffer[] | undefined;
  let length = 0;
  let sender: Sender | undefined;
  const release = () => {
    if (sender !== undefined) unfinished.release(sender);
  };
  const onData = (chunk: Buffer) => {
    length += chunk.length;
    if (length > limit) {
      request.removeListener("data", onData);
      request.removeListener("end", onEnd);
      release();
      done(TOO_LARGE);
      return;
    }
    if (length !== announced) {
      if (sender === undefined) {
        sender = { close: () => void request.destroy() };
        request.once("close", release);
      }
      unfinished.hold(sender, length);
    }
    if (first === undefined) first = chunk;
    else if (rest === undefined) rest = [first, chunk];
    else rest.push(chunk);
  };
  const onEnd = () => {
    release();
    done(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, length));
  };
  request.on("data", onData);
  request.on("end", onEnd);
}

const EMPTY = Buffer.alloc(0);
