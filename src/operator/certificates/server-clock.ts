/**
 * The time by the API server's clock, which judges every certificate: by a clock ahead of it, certificates would be made that it rejects,
 * and valid ones replaced. The local clock counts until the first response, which carries the time as each response does.
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
