import type { AcceptsToken } from "../../admission/review/routes.ts";
import { isNotFound, StatusError } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/discovery.ts";
import { stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { DeduplicatedLog } from "../deduplicated-log.ts";
import { acceptsToken, type PathTokens, parseTokens } from "./path-tokens.ts";
import { READ_MS, type ReadTimes, RepeatedRead } from "./repeated-read.ts";
import { ServerClock } from "./server-clock.ts";

interface PathSecretOptions extends ReadTimes {
  readonly client: Client;
  readonly namespace: string;
  readonly secret: string;
  readonly key: string;
  readonly log: Log;
}

/** Path tokens that another process keeps in a Secret, for a replica that only reads it, by its name. */
export class PathSecret {
  readonly #options: PathSecretOptions;
  readonly #path: string;
  readonly #deduplicated: DeduplicatedLog;
  readonly #reads: RepeatedRead;
  readonly #clock = new ServerClock(Date.now);
  #tokens: PathTokens | undefined;

  constructor(options: PathSecretOptions) {
    this.#options = options;
    const namespace = pathSegment("namespace", options.namespace);
    this.#path = `/api/v1/namespaces/${namespace}/secrets/${pathSegment("name", options.secret)}`;
    this.#deduplicated = new DeduplicatedLog(options.log, () => performance.now());
    this.#reads = new RepeatedRead(() => this.#read(), options);
  }

  /** An unknown token may have just been written: it is looked up. */
  readonly acceptsToken: AcceptsToken = (token) => {
    if (token === undefined || this.#accepts(token)) return token !== undefined;
    return this.#reads.soon().then(() => this.#accepts(token));
  };

  #accepts(token: string): boolean {
    return acceptsToken(this.#tokens, token, this.#clock.now());
  }

  /**
   * Resolves after the first attempt: it also serves without tokens, and an API server that calls with one is refused
   * until then.
   */
  start(): Promise<void> {
    return this.#reads.start();
  }

  stop(): void {
    this.#reads.stop();
  }

  /** An unreadable or absent Secret changes nothing: the webhook may still name the previous tokens. */
  async #read(): Promise<void> {
    const { client, secret, key } = this.#options;
    try {
      const answer = await client.request("GET", this.#path, { timeoutMs: READ_MS });
      this.#clock.observe(answer.headers);
      if (isNotFound(answer, secret)) throw new Error("there is no such Secret");
      if (answer.status !== 200) throw new StatusError(`reading the Secret ${secret}`, answer);
      const text = Buffer.from(stringAt(answer.body, "data", key) ?? "", "base64").toString("utf8");
      const tokens = parseTokens(text);
      if (tokens === undefined) throw new Error(`its key ${key} holds no path tokens`);
      this.#tokens = tokens;
      this.#deduplicated.succeeded(secret);
    } catch (error) {
      const message = "failed to read the path tokens, retrying: calls by the Service are refused until then";
      this.#deduplicated.failed(secret, error, message);
    }
  }
}
