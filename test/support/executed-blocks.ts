import { Session } from "node:inspector/promises";
import { join } from "node:path";

const SOURCE = join(import.meta.dirname, "..", "..", "src");

/** Counts the blocks of code under `src` that run, as V8's coverage has them: the same call gives the same number on every machine. */
export class ExecutedBlocks {
  readonly #session = new Session();

  private constructor() {
    this.#session.connect();
  }

  static async start(): Promise<ExecutedBlocks> {
    const blocks = new ExecutedBlocks();
    await blocks.#session.post("Profiler.enable");
    await blocks.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    return blocks;
  }

  /** How many blocks ran since the last call. */
  async take(): Promise<number> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    let count = 0;
    for (const { url, functions } of result) {
      if (!url.includes(SOURCE)) continue;
      for (const { ranges } of functions) for (const range of ranges) count += range.count;
    }
    return count;
  }

  async stop(): Promise<void> {
    await this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }
}
