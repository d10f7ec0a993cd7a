/** A client that has sent a part of a request. */
export interface Sender {
  /** Closes its connection. */
  close(): void;
}

/**
 * Bytes of unfinished bodies, of all connections together. Any client that reaches the port may begin any number of requests, which
 * must not fill the memory. Above the limit the oldest is closed: an API server's body arrives at once.
 */
export class UnfinishedBodies {
  readonly #most: number;
  #bytes = 0;
  /** In the order in which they began. */
  readonly #held = new Map<Sender, number>();
  readonly #onClosed: (bytes: number) => void;

  /** `onClosed` receives the bytes of each sender that was closed. */
  constructor(mostBytes: number, onClosed: (bytes: number) => void) {
    this.#most = mostBytes;
    this.#onClosed = onClosed;
  }

  /** A sender has sent so many bytes so far, and more are to come. */
  hold(sender: Sender, bytes: number): void {
    this.#bytes += bytes - (this.#held.get(sender) ?? 0);
    this.#held.set(sender, bytes);
    while (this.#bytes > this.#most) {
      const [oldest] = this.#held;
      if (oldest === undefined) return;
      const [slow, sent] = oldest;
      this.release(slow);
      slow.close();
      this.#onClosed(sent);
    }
  }

  /** The body is complete, or its connection closed. */
  release(sender: Sender): void {
    this.#bytes -= this.#held.get(sender) ?? 0;
    this.#held.delete(sender);
  }
}
