import { parseServerVersion, type ServerVersion } from "../../core/kubernetes/versions.ts";
import type { Log } from "../../core/log.ts";
import { errorMessage, responseMessage } from "../client/api-response.ts";
import type { Client } from "../client/client.ts";

/** An API server is upgraded by restarting it; a minute later nothing depends on the old version. */
const POLL_MS = 60_000;
/** While the version is unknown. */
const RETRY_MS = 5_000;
/** The response is a constant of the API server. */
const TIMEOUT_MS = 5_000;

export interface ServerVersionOptions {
  readonly client: Client;
  readonly log: Log;
  /** Called with every version that was read, changed or not. */
  readonly observed: (version: ServerVersion) => void;
  readonly pollMs?: number;
  readonly retryMs?: number;
}

/** Follows the version of the API server by polling `/version`, which can't be watched. */
export class ServerVersionPoller {
  readonly #options: ServerVersionOptions;
  readonly #stopped = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #failing = false;
  /** Resolves after the first attempt, even a failed one: a cluster is served without a known version. */
  readonly first: Promise<void>;

  constructor(options: ServerVersionOptions) {
    this.#options = options;
    this.first = this.#poll();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stopped.abort();
  }

  async #poll(): Promise<void> {
    const { observed, log, pollMs = POLL_MS, retryMs = RETRY_MS } = this.#options;
    const result = await this.#read();
    if (this.#stopped.signal.aborted) return;
    if (typeof result !== "string") observed(result);
    else if (!this.#failing) log.warn({ error: result }, "failed to read the API server's version");
    this.#failing = typeof result === "string";
    this.#timer = setTimeout(() => void this.#poll(), this.#failing ? retryMs : pollMs).unref();
  }

  async #read(): Promise<ServerVersion | string> {
    const { client } = this.#options;
    try {
      const answer = await client.request("GET", "/version", {
        signal: this.#stopped.signal,
        timeoutMs: TIMEOUT_MS,
      });
      const version = answer.status === 200 ? parseServerVersion(answer.body) : undefined;
      return version ?? responseMessage("/version", answer);
    } catch (error) {
      return errorMessage("/version", error);
    }
  }
}
