/** A client that has sent a part of a request. */
export interface Sender {
  /** Ends it: there was no room for what it has sent. */
  giveWay(): void;
}

/**
 * The requests that are not whole yet, of all connections together. Anybody who reaches the port may begin as many as he likes, and
 * what was sent of them must not fill the memory. Where it is too much, the oldest gives way: an API server's is whole at once.
 */
export class UnfinishedBodies {
  readonly #most: number;
  #bytes = 0;
  /** Since when each has been here says its place. */
  readonly #held = new Map<Sender, number>();
  readonly #ended: (bytes: number) => void;

  /** `ended` is told of each that had to give way. */
  constructor(mostBytes: number, ended: (bytes: number) => void) {
    this.#most = mostBytes;
    this.#ended = ended;
  }

  /** So many bytes are there of a sender's request now, and more are to come. */
  hold(sender: Sender, bytes: number): void {
    this.#bytes += bytes - (this.#held.get(sender) ?? 0);
    this.#held.set(sender, bytes);
    while (this.#bytes > this.#most) {
      const [oldest] = this.#held;
      if (oldest === undefined) return;
      const [slow, sent] = oldest;
      this.release(slow);
      slow.giveWay();
      this.#ended(sent);
    }
  }

  /** It is whole, or nobody waits for it any more. */
  release(sender: Sender): void {
    this.#bytes -= this.#held.get(sender) ?? 0;
    this.#held.delete(sender);
  }
}
