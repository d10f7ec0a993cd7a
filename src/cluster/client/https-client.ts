import {
  type Agent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions as NodeOptions,
} from "node:http";
import { request as httpsRequest, type request } from "node:https";
import { isDeepStrictEqual } from "node:util";
import {
  type ClusterAccess,
  type Credentials,
  closeIdleSockets,
  redactedUrl,
} from "../credentials/credentials.ts";
import {
  type ApiResponse,
  type Client,
  ConnectionError,
  type RequestOptions,
  type Stream,
} from "./client.ts";
import { OBJECT_BYTES } from "./lines.ts";
import {
  asConnectionError,
  errorCode,
  headersOf,
  readLines,
  readResponse,
  statusOf,
} from "./response-body.ts";

/** The default for a request. The API server itself gives up after 60 s. */
const TIMEOUT_MS = 30_000;

/** The server may close a kept connection just as it is reused: a read is then sent again on another. */
const READ_ATTEMPTS = 3;

/**
 * A read of a caller that can't wait, such as a review, is sent again on a new connection after half of its time: the
 * kept connection may have been cut silently. Reads with more time than this are not repeated: a slow server would do
 * the work twice.
 */
const URGENT_MS = 10_000;

export interface HttpsClientOptions {
  /** For requests without their own limit. @default the largest object */
  readonly responseLimitBytes?: number;
  /** For requests without their own timeout. @default 30 s */
  readonly timeoutMs?: number;
  /** @default usher */
  readonly userAgent?: string;
}

interface Exchange {
  readonly response: IncomingMessage;
  /** Clears the timeout and the listener on the caller's signal. */
  readonly done: () => void;
}

export function createClient(credentials: Credentials, options: HttpsClientOptions = {}): Client {
  return new HttpsClient(credentials, options);
}

class HttpsClient implements Client {
  readonly server: string;
  readonly #credentials: Credentials;
  readonly #base: NodeOptions;
  readonly #prefix: string;
  readonly #request: typeof httpsRequest;
  readonly #limit: number;
  readonly #timeoutMs: number;
  readonly #userAgent: string;
  #renewing: Promise<boolean> | undefined;
  #agent: Agent | undefined;

  constructor(credentials: Credentials, options: HttpsClientOptions) {
    const url = new URL(credentials.server);
    this.server = redactedUrl(credentials.server).replace(/\/+$/, "");
    this.#credentials = credentials;
    // URLs put IPv6 addresses in brackets; sockets take them without.
    const hostname = url.hostname.replace(/^\[|\]$/g, "");
    this.#base = { hostname, port: url.port === "" ? defaultPort(url) : Number(url.port) };
    this.#prefix = url.pathname.replace(/\/+$/, "");
    this.#request = url.protocol === "http:" ? httpRequest : httpsRequest;
    this.#limit = options.responseLimitBytes ?? OBJECT_BYTES;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#userAgent = options.userAgent ?? "usher";
  }

  request = async (method: string, path: string, options: RequestOptions = {}): Promise<ApiResponse> => {
    const exchange = await this.#exchange(method, path, options);
    return this.#read(exchange, `${method} ${path}`, options.limitBytes);
  };

  stream = async (path: string, options: { readonly signal?: AbortSignal } = {}): Promise<Stream> => {
    const exchange = await this.#exchange("GET", path, options);
    const { response, done } = exchange;
    const status = statusOf(response);
    const headers = headersOf(response);
    if (status >= 400) {
      const { text } = await this.#read(exchange, `GET ${path}`);
      return { status, headers, lines: only(text), close: () => undefined };
    }
    // From here on the caller sets timeouts: how long a watch may be idle depends on the watch.
    done();
    let closed = false;
    const close = (): void => {
      closed = true;
      response.destroy();
    };
    options.signal?.addEventListener("abort", close, { once: true });
    response.once("close", () => options.signal?.removeEventListener("abort", close));
    if (options.signal?.aborted) close();
    return { status, headers, lines: readLines(response, () => closed, `GET ${path}`), close };
  };

  closeIdleConnections = (): void => {
    if (this.#agent !== undefined) closeIdleSockets(this.#agent);
  };

  close = (): void => this.#credentials.close();

  async #read({ response, done }: Exchange, what: string, limit = this.#limit): Promise<ApiResponse> {
    try {
      return await readResponse(response, limit, what);
    } catch (error) {
      throw asConnectionError(error, what);
    } finally {
      done();
    }
  }

  async #exchange(method: string, path: string, given: RequestOptions): Promise<Exchange> {
    let access = await this.#access();
    const { timeoutMs = this.#timeoutMs } = given;
    const options = { ...given, timeoutMs, deadline: performance.now() + timeoutMs };
    let renewed = false;
    const isUrgent = method === "GET" && timeoutMs <= URGENT_MS;
    for (let attempt = 1; ; attempt++) {
      const silentMs = isUrgent && attempt === 1 ? timeoutMs / 2 : undefined;
      const sent = this.#send(method, path, { ...options, silentMs }, access);
      const response = await sent.response.catch(async (error: unknown) => {
        sent.done();
        if (isCertificateError(error)) await this.#renew();
        else if (method === "GET" && sent.stale && attempt < READ_ATTEMPTS) {
          // Other connections may be dead as well.
          this.closeIdleConnections();
          return undefined;
        }
        throw asConnectionError(error, `${method} ${path}`);
      });
      if (response !== undefined) {
        if (statusOf(response) !== 401 || renewed) return { response, done: sent.done };
        // Rejected before anything was done, so even a write may be sent again: once, and only with new credentials.
        renewed = true;
        const outdated = await this.#outdated(access).catch((error: unknown) => {
          discard(response, sent);
          throw error;
        });
        if (!outdated) return { response, done: sent.done };
        discard(response, sent);
      }
      access = await this.#access();
    }
  }

  #send(method: string, path: string, options: TimedOptions, access: ClusterAccess): PendingRequest {
    try {
      if (performance.now() >= options.deadline) throw timeoutError(options);
      return new PendingRequest(this.#request, this.#options(method, path, options, access), options);
    } catch (error) {
      // Node may throw synchronously, for example for an invalid client certificate.
      throw asConnectionError(error, `${method} ${path}`);
    }
  }

  async #access(): Promise<ClusterAccess> {
    try {
      const access = await this.#credentials.access();
      this.#agent = access.agent;
      return access;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new ConnectionError(`no credentials for ${this.server}: ${why}`, { cause: error });
    }
  }

  /** Whether newer credentials exist than those that were rejected. Of many requests rejected together, the first renews. */
  async #outdated(rejected: ClusterAccess): Promise<boolean> {
    const { agent, headers } = await this.#access();
    return agent !== rejected.agent || !isDeepStrictEqual(headers, rejected.headers) || this.#renew();
  }

  /** Once for concurrent callers: an exec plugin may start a program. */
  #renew(): Promise<boolean> {
    this.#renewing ??= this.#credentials
      .renew()
      .catch(() => false)
      .finally(() => {
        this.#renewing = undefined;
      });
    return this.#renewing;
  }

  #options(method: string, path: string, options: RequestOptions, access: ClusterAccess): NodeOptions {
    const headers: Record<string, string> = {
      accept: options.accept ?? "application/json",
      "user-agent": this.#userAgent,
      ...access.headers,
    };
    if (options.body !== undefined) headers["content-type"] = options.contentType ?? "application/json";
    return { ...this.#base, agent: access.agent, method, path: this.#prefix + path, headers };
  }
}

/** An unread response must still end, or time out: until then it occupies a connection. */
function discard(response: IncomingMessage, { done }: PendingRequest): void {
  if (response.closed) done();
  else response.once("close", done).resume();
}

function defaultPort({ protocol }: URL): number {
  return protocol === "http:" ? 80 : 443;
}

function isCertificateError(error: unknown): boolean {
  return /CERT|SIGNATURE|ERR_TLS|ERR_SSL/.test(errorCode(error));
}

async function* only(text: string): AsyncGenerator<string> {
  yield text;
}

/** A request's options with its deadline. */
interface TimedOptions extends RequestOptions {
  readonly timeoutMs: number;
  /** By `performance.now()`; the same for all attempts. */
  readonly deadline: number;
  /** How long a kept connection may be silent: one that was cut silently looks like a slow server. @default the deadline */
  readonly silentMs?: number | undefined;
}

function timeoutError({ timeoutMs }: TimedOptions): ConnectionError {
  return new ConnectionError(`no complete response within ${timeoutMs} ms`);
}

/** One request in flight, with its timeout and its caller's signal. */
class PendingRequest {
  readonly response: Promise<IncomingMessage>;
  readonly done: () => void;
  readonly #isStale: () => boolean;

  constructor(send: typeof request, base: NodeOptions, options: TimedOptions) {
    const { body, signal, deadline, silentMs } = options;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const length = payload === undefined ? {} : { "content-length": String(payload.length) };
    const sent = send({ ...base, headers: { ...(base.headers as Record<string, string>), ...length } });
    let ended = false;
    const end = (why: ConnectionError): void => {
      ended = true;
      sent.destroy(why);
    };
    const cancel = (): void => end(new ConnectionError("canceled by the caller"));
    const timer = setTimeout(() => end(timeoutError(options)), deadline - performance.now());
    const onSilence = (): unknown => sent.reusedSocket && sent.destroy(new ConnectionError("no response"));
    const silenceTimer = silentMs === undefined ? undefined : setTimeout(onSilence, silentMs);
    this.done = () => {
      clearTimeout(timer);
      clearTimeout(silenceTimer);
      signal?.removeEventListener("abort", cancel);
    };
    // Only a reused connection can have been closed while idle, and only if this side did not end it.
    this.#isStale = () => sent.reusedSocket && !ended;
    this.response = new Promise((resolve, reject) => {
      sent.once("response", (response: IncomingMessage) => {
        clearTimeout(silenceTimer);
        resolve(response);
      });
      // Stays attached: the response reports errors after it, and an error without a listener would end the process.
      sent.on("error", reject);
    });
    if (signal?.aborted) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
    sent.end(payload);
  }

  get stale(): boolean {
    return this.#isStale();
  }
}
