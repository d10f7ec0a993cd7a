/**
 * The time by the API server's clock, which validates every certificate: with a clock ahead of it, usher would issue
 * certificates that it rejects, and replace valid ones. The local clock counts until the first response, because each
 * response carries the time.
 */
export class ServerClock {
  readonly #local: () => number;
  /** The last time that it sent, and when that was on the monotonic clock. */
  #last: { readonly time: number; readonly at: number } | undefined;

  constructor(local: () => number) {
    this.#local = local;
  }

  /** Reads the time from the headers of a response. */
  observe({ date }: Readonly<Record<string, string>>): void {
    const time = Date.parse(date ?? "");
    if (!Number.isNaN(time)) this.#last = { time, at: performance.now() };
  }

  /** Milliseconds since 1970. */
  now(): number {
    const last = this.#last;
    return last === undefined ? this.#local() : last.time + (performance.now() - last.at);
  }
}
