import { setTimeout as pause } from "node:timers/promises";
import type { Health } from "../observe/health.ts";
import type { HttpsServer } from "./https-server.ts";

/**
 * How long a draining instance keeps serving: until its endpoint has left the EndpointSlice, and every API server's
 * cache of it.
 */
export const SERVE_ON_MS = 5_000;

export interface DrainOptions {
  /** How long to keep serving as "not ready". @default 5 s */
  readonly serveOnMs?: number | undefined;
}

export interface ShutdownOptions {
  readonly webhook: HttpsServer;
  readonly health: Health;
  /** How long requests in flight may take. */
  readonly finishMs: number;
  /** Everything else that runs, stopped last: health is served until then. */
  readonly stops: readonly (() => unknown)[];
}

/** Draining, and immediate closing. Both may be called in any order and repeatedly. */
export class Shutdown {
  readonly #options: ShutdownOptions;
  readonly #closed = new AbortController();
  #draining: Promise<void> | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: ShutdownOptions) {
    this.#options = options;
  }

  /** Not ready first, then keeps serving with `Connection: close`, then stops listening and finishes requests in flight. */
  drain(serveOnMs = SERVE_ON_MS): Promise<void> {
    this.#draining ??= this.#drain(serveOnMs);
    return this.#draining;
  }

  /** Immediately: requests in flight are aborted. */
  async close(): Promise<void> {
    this.#closed.abort();
    // Ends a drain that waits for requests in flight.
    if (this.#ending !== undefined) await this.#options.webhook.finish(0);
    await this.#end(0);
  }

  async #drain(serveOnMs: number): Promise<void> {
    const { webhook, health, finishMs } = this.#options;
    health.set("not-draining", false);
    webhook.startDraining();
    await pause(serveOnMs, undefined, { signal: this.#closed.signal }).catch(() => undefined);
    await this.#end(finishMs);
  }

  #end(withinMs: number): Promise<void> {
    const { webhook, stops } = this.#options;
    const end = async () => {
      await webhook.finish(withinMs);
      await Promise.all(stops.map((stop) => stop()));
    };
    this.#ending ??= end();
    return this.#ending;
  }
}
