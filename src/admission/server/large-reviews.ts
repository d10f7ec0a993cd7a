import type { IncomingMessage } from "node:http";

/**
 * A longer body waits for its turn. Nearly every review is shorter: a pod has some kilobytes, an update of a large Deployment fifty. One
 * of this length is parsed and judged in some milliseconds, one of 3 MiB in a hundred.
 */
export const LARGE_BYTES = 128 * 1024;

/** A client that sends slowly delays the next body by this long at most; then both are read. At 1 Gbit/s 20 MiB take 170 ms. */
const TURN_MS = 250;

/** The API server writes uid, kind, resource and name before the namespace: some hundred bytes. */
const ENVELOPE_BYTES = 4_096;

const NAMESPACE = Buffer.from('"namespace":"');

/**
 * Large bodies are read and judged one after the other, one namespace after the other, and between two of them the event loop serves all
 * that has arrived meanwhile. So a tenant whose reviews cost much delays others by one of them at most, and its own by all of them.
 * Bodies that wait stay where they are, at their clients.
 */
export class LargeReviews {
  readonly #waiting = new RoundRobin<() => void>();
  readonly #nextTurn: (run: () => void) => unknown;
  #isBusy = false;

  /** @param nextTurn Runs a function once the loop has served what has arrived. */
  constructor(nextTurn: (run: () => void) => unknown = setImmediate) {
    this.#nextTurn = nextTurn;
  }

  /** Calls `read` at once, or when it is the turn of the request. It is to call `end` once the body was read, before it judges. */
  take(request: IncomingMessage, read: (end: () => void) => void): void {
    const length = Number(request.headers["content-length"] ?? Number.NaN);
    if (!(length > LARGE_BYTES)) {
      read(() => undefined);
      return;
    }
    // A client that sends no body at all has no turn.
    request.once("readable", () => {
      const first: Buffer | null = request.read();
      if (first !== null) request.unshift(first);
      this.#waiting.add(namespaceIn(first), () => this.#start(request, read));
      if (!this.#isBusy) this.#next();
    });
  }

  /** One in each turn of the loop. */
  #next(): void {
    this.#isBusy = true;
    this.#nextTurn(() => {
      const start = this.#waiting.next();
      if (start === undefined) this.#isBusy = false;
      else start();
    });
  }

  #start(request: IncomingMessage, read: (end: () => void) => void): void {
    let isOver = false;
    const end = () => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      request.removeListener("close", end);
      this.#next();
    };
    const timer = setTimeout(end, TURN_MS);
    request.once("close", end);
    if (request.destroyed) end();
    else read(end);
  }
}

/** Items by key: the first of each key in turn, and those of one key in their order. */
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
 * The namespace of a review by its first bytes, as an API server writes them: before the object, and with the quotes of all texts escaped.
 * It decides only about the order of reviews. Bodies of another form and bodies without a namespace share one place in that order.
 */
export function namespaceIn(body: Buffer | null): string {
  const envelope = body?.subarray(0, ENVELOPE_BYTES);
  const from = envelope?.indexOf(NAMESPACE) ?? -1;
  if (envelope === undefined || from < 0) return "";
  const start = from + NAMESPACE.length;
  const end = envelope.indexOf('"', start);
  return end < 0 ? "" : envelope.toString("latin1", start, end);
}
