import { setTimeout as pause } from "node:timers/promises";
import type { Health } from "../observe/health.ts";
import type { HttpsServer } from "./https-server.ts";

/**
 * How long a draining instance serves on: its endpoint must first vanish from the EndpointSlice, and then from what every
 * API server has cached of it.
 */
export const SERVE_ON_MS = 5_000;

export interface DrainOptions {
  /** How long to serve on as "not ready". @default 5 s */
  readonly serveOnMs?: number | undefined;
}

export interface ShutdownOptions {
  readonly webhook: HttpsServer;
  readonly pulse: Health;
  /** How long what is in flight may take. */
  readonly finishMs: number;
  /** Everything else that runs, ended last: until then health is still answered. */
  readonly stops: readonly (() => unknown)[];
}

/** The two ways to end. Both may be called in any order and more than once. */
export class Shutdown {
  readonly #options: ShutdownOptions;
  readonly #hurry = new AbortController();
  #draining: Promise<void> | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: ShutdownOptions) {
    this.#options = options;
  }

  /** Not ready first, then serves on with `Connection: close`, then closes the door and finishes what is in flight. */
  drain(serveOnMs = SERVE_ON_MS): Promise<void> {
    this.#draining ??= this.#drain(serveOnMs);
    return this.#draining;
  }

  /** At once: what is in flight is cut off. */
  async close(): Promise<void> {
    this.#hurry.abort();
    // An end that waits for others waits no longer.
    if (this.#ending !== undefined) await this.#options.webhook.finish(0);
    await this.#end(0);
  }

  async #drain(serveOnMs: number): Promise<void> {
    const { webhook, pulse, finishMs } = this.#options;
    pulse.set("not-draining", false);
    webhook.startDraining();
    await pause(serveOnMs, undefined, { signal: this.#hurry.signal }).catch(() => undefined);
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
