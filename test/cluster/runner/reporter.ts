// Writes a pod's status whenever it has changed, one write at a time, and retries until it succeeds.
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../../../src/core/json.ts";
import { isObject, listAt, stringAt } from "../../../src/core/json.ts";

const RETRY_MS = 300;

export class Reporter {
  readonly #compute: () => JsonObject;
  readonly #write: (status: JsonObject) => Promise<boolean>;
  readonly #since = new Map<string, { status: string | undefined; time: string }>();
  #written = "";
  #writing: Promise<void> | undefined;
  #closed = false;

  constructor(compute: () => JsonObject, write: (status: JsonObject) => Promise<boolean>) {
    this.#compute = compute;
    this.#write = write;
  }

  /** Resolves when the current status has been written, or nothing can be written any more. */
  report(): Promise<void> {
    this.#writing ??= this.#work().finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  close(): void {
    this.#closed = true;
  }

  async #work(): Promise<void> {
    while (!this.#closed) {
      const status = this.#compute();
      const text = JSON.stringify(status);
      if (text === this.#written) return;
      try {
        if (!(await this.#write(this.#stamp(status)))) this.#closed = true;
        this.#written = text;
      } catch {
        // The API server may be restarting, or may not know yet that the pod is on this node.
        await sleep(RETRY_MS);
      }
    }
  }

  /** A condition's time is that of its last status change. */
  #stamp(status: JsonObject): JsonObject {
    const conditions = listAt(status, "conditions")
      .filter(isObject)
      .map((condition) => {
        const type = stringAt(condition, "type") ?? "";
        const value = stringAt(condition, "status");
        const known = this.#since.get(type);
        const since =
          known?.status === value && known !== undefined
            ? known
            : { status: value, time: new Date().toISOString() };
        this.#since.set(type, since);
        return { ...condition, lastTransitionTime: since.time };
      });
    return { ...status, conditions };
  }
}
