/** The part of a connection that is needed here. A socket is one. */
export interface Connection {
  readonly once: (event: "close", listener: () => void) => unknown;
  readonly destroy: () => unknown;
}

/**
 * Bytes kept for clients, over all connections: bodies that are still arriving, requests that wait for facts, and
 * responses that are not read yet. Any client that reaches the port can cause any number of them, which must not fill
 * the memory. Above the limit the connection that has held bytes for longest is closed: those of an API server arrive,
 * and are read, quickly.
 */
export class BytesInFlight {
  readonly #most: number;
  #bytes = 0;
  /** In the order in which they began to hold bytes. */
  readonly #held = new Map<Connection, number>();
  readonly #seen = new WeakSet<Connection>();
  readonly #onClosed: (bytes: number) => void;

  /** `onClosed` receives the bytes of each connection that was closed. */
  constructor(mostBytes: number, onClosed: (bytes: number) => void) {
    this.#most = mostBytes;
    this.#onClosed = onClosed;
  }

  /** To be removed again; closing the connection removes all of its bytes. */
  add(connection: Connection, bytes: number): void {
    if (!this.#seen.has(connection)) {
      this.#seen.add(connection);
      connection.once("close", () => this.#removeAll(connection));
    }
    this.#bytes += bytes;
    this.#held.set(connection, (this.#held.get(connection) ?? 0) + bytes);
    while (this.#bytes > this.#most) {
      const [oldest] = this.#held;
      if (oldest === undefined) return;
      const [closing, held] = oldest;
      this.#removeAll(closing);
      closing.destroy();
      this.#onClosed(held);
    }
  }

  /** Does nothing if the connection was closed in the meantime. */
  remove(connection: Connection, bytes: number): void {
    const held = this.#held.get(connection);
    if (held === undefined) return;
    if (held <= bytes) this.#removeAll(connection);
    else {
      this.#bytes -= bytes;
      this.#held.set(connection, held - bytes);
    }
  }

  #removeAll(connection: Connection): void {
    this.#bytes -= this.#held.get(connection) ?? 0;
    this.#held.delete(connection);
  }
}
