import type { IncomingMessage } from "node:http";
import type { UnfinishedBodies } from "./unfinished-bodies.ts";

/** A body that is longer than the limit. */
export const TOO_LARGE = Symbol("too large");

/**
 * Gathers the body of a request and gives it, or says that it is too large as soon as that is known: at once where the length is
 * announced, else with the chunk that passes the limit. A caller who hangs up is never answered, so nothing is given then.
 */
export function readBody(
  request: IncomingMessage,
  limit: number,
  unfinished: UnfinishedBodies,
  done: (body: Buffer | typeof TOO_LARGE) => void,
): void {
  if (Number(request.headers["content-length"] ?? 0) > limit) {
    done(TOO_LARGE);
    return;
  }
  // Most bodies come in one chunk, and that chunk is then the body: nothing is copied.
  let first: Buffer | undefined;
  let rest: Buffer[] | undefined;
  let length = 0;
  const sender = { giveWay: () => void request.destroy() };
  const take = (chunk: Buffer) => {
    length += chunk.length;
    if (length > limit) {
      request.removeListener("data", take);
      request.removeListener("end", finish);
      unfinished.release(sender);
      done(TOO_LARGE);
      return;
    }
    unfinished.hold(sender, length);
    if (first === undefined) first = chunk;
    else if (rest === undefined) rest = [first, chunk];
    else rest.push(chunk);
  };
  const finish = () => {
    unfinished.release(sender);
    done(rest === undefined ? (first ?? EMPTY) : Buffer.concat(rest, length));
  };
  request.on("data", take);
  request.on("end", finish);
  request.once("close", () => unfinished.release(sender));
}

const EMPTY = Buffer.alloc(0);
