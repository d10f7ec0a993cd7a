import type { IncomingMessage } from "node:http";

/**
 * A longer body waits for its turn. Nearly every review is shorter: a pod has some kilobytes, an update of a large
 * Deployment fifty. One of this length is parsed and evaluated in some milliseconds, one of 3 MiB in a hundred.
 */
export const LARGE_BYTES = 128 * 1024;

/** A body delays the next one by at most this long; then both are read. At 1 Gbit/s 20 MiB take 170 ms. */
const TURN_MS = 250;

/**
 * A body loses its turn if less than a chunk of Node's has arrived in this time: a stalling client delays others by no
 * more than this. At 1 Gbit/s ten chunks arrive. If the network was slow for a moment, two bodies are read
 * concurrently.
 */
const STALL_MS = 5;
const CHUNK_BYTES = 64 * 1024;

/** The API server writes uid, kind, resource and name before the namespace: some hundred bytes. */
const ENVELOPE_BYTES = 4_096;

const NAMESPACE = Buffer.from('"namespace":"');

/**
 * Large bodies are read and evaluated in sequence, with namespaces in turn, and between two of them the event loop
 * serves everything that has arrived in the meantime. So a tenant whose reviews are expensive delays others by at most
 * one of them, and its own by all of them. Waiting bodies stay at their clients.
 */
export class LargeReviews {
  readonly #waiting = new RoundRobin<() => void>();
  readonly #nextTurn: (run: () => void) => unknown;
  #isBusy = false;

  /** @param nextTurn Runs a function once the loop has served what has arrived. */
  constructor(nextTurn: (run: () => void) => unknown = setImmediate) {
    this.#nextTurn = nextTurn;
  }

  /**
   * Calls `read` immediately, or when it is the request's turn. Once the body was read, `read` must pass the work on it
   * to its argument, which runs it immediately or, if the body lost its turn, in a later turn.
   */
  take(request: IncomingMessage, read: (inTurn: InTurn) => void): void {
    const length = Number(request.headers["content-length"] ?? Number.NaN);
    if (!(length > LARGE_BYTES)) {
      read((work) => work());
      return;
    }
    // A client that sends no body at all gets no turn.
    request.once("readable", () => {
      const first: Buffer | null = request.read();
      if (first !== null) request.unshift(first);
      const namespace = namespaceIn(first);
      this.#wait(namespace, () => this.#start(namespace, request, read));
    });
  }

  #wait(namespace: string, start: () => void): void {
    this.#waiting.add(namespace, start);
    if (!this.#isBusy) this.#next();
  }

  /** One per turn of the loop. */
  #next(): void {
    this.#isBusy = true;
    this.#nextTurn(() => {
      const start = this.#waiting.next();
      if (start === undefined) this.#isBusy = false;
      else start();
    });
  }

  #start(namespace: string, request: IncomingMessage, read: (inTurn: InTurn) => void): void {
    if (request.destroyed) {
      this.#next();
      return;
    }
    const started = performance.now();
    let hasTurn = true;
    let received = 0;
    const end = () => {
      if (!hasTurn) return;
      hasTurn = false;
      clearInterval(timer);
      request.removeListener("close", end);
      request.removeListener("data", count);
      this.#next();
    };
    const count = (chunk: Buffer) => {
      received += chunk.length;
    };
    const timer = setInterval(() => {
      // The loop may have been busy for longer than the interval: chunks that arrived in the meantime are read first.
      setImmediate(() => {
        if (received < CHUNK_BYTES || performance.now() - started >= TURN_MS) end();
        received = 0;
      });
    }, STALL_MS);
    request.once("close", end);
    read((work) => {
      if (hasTurn) {
        end();
        work();
      } else
        this.#wait(namespace, () => {
          this.#next();
          work();
        });
    });
    request.on("data", count);
  }
}

/** Runs work immediately, or in a later turn. */
export type InTurn = (work: () => void) => void;

/** Items by key: the first of each key in turn, and those of one key in order. */
export class RoundRobin<Item> {
  /** The key whose turn it is comes first. */
  readonly #items = new Map<string, Item[]>();

  add(key: string, item: Item): void {
    const items = this.#items.get(key);
    if (items === undefined) this.#items.set(key, [item]);
    else items.push(item);
  }

  next(): Item | undefined {
    const [first] = this.#items;
    if (first === undefined) return undefined;
    const [key, items] = first;
    const item = items.shift();
    this.#items.delete(key);
    if (items.length > 0) this.#items.set(key, items);
    return item;
  }
}

/**
 * The namespace of a review by its first bytes, in the form that an API server writes: before the object, and with
 * escaped quotes in all strings. It affects only the order of reviews. Bodies of another form and bodies without a
 * namespace share one key.
 */
export function namespaceIn(body: Buffer | null): string {
  const envelope = body?.subarray(0, ENVELOPE_BYTES);
  const from = envelope?.indexOf(NAMESPACE) ?? -1;
  if (envelope === undefined || from < 0) return "";
  const start = from + NAMESPACE.length;
  const end = envelope.indexOf('"', start);
  return end < 0 ? "" : envelope.toString("latin1", start, end);
}
