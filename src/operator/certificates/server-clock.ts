/**
 * The time as the API server has it, because that clock judges every certificate: by one that is ahead of it, pairs would be made that
 * it refuses, and good ones replaced. Our own until it has told its time, which it does with every answer.
 */
export class ServerClock {
  readonly #own: () => number;
  /** What it said last, and when that was on a clock that nobody sets. */
  #heard: { readonly time: number; readonly at: number } | undefined;

  constructor(own: () => number) {
    this.#own = own;
  }

  /** Takes the time from the headers of an answer. */
  hear({ date }: Readonly<Record<string, string>>): void {
    const time = Date.parse(date ?? "");
    if (!Number.isNaN(time)) this.#heard = { time, at: performance.now() };
  }

  /** Milliseconds since 1970. */
  now(): number {
    const heard = this.#heard;
    return heard === undefined ? this.#own() : heard.time + (performance.now() - heard.at);
  }
}
