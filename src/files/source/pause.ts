/** Milliseconds of work after which others get their turn. A request takes less than one; ten would show in its p99. */
const SLICE_MS = 2;

/** Yields to the event loop, but only after a while: yielding each time would cost more than the work. */
export class Pause {
  #since = performance.now();

  get due(): boolean {
    return performance.now() - this.#since > SLICE_MS;
  }

  async take(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}
