import {
  type Agent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions as NodeOptions,
} from "node:http";
import { request as httpsRequest } from "node:https";
import { isDeepStrictEqual } from "node:util";
import type { Json } from "../../core/json.ts";
import { type Access, type Credentials, closeIdleSockets } from "../credentials/credentials.ts";
import { redactedUrl } from "../credentials/redacted-url.ts";
import {
  type ApiResponse,
  type Client,
  ConnectionError,
  type RequestOptions,
  type Stream,
} from "./client.ts";
import { linesOf } from "./lines.ts";
import { PendingRequest, type TimedOptions, timeoutError } from "./pending-request.ts";

/** How long an answer may take where the caller does not say. The API server itself gives up after 60 s. */
const TIMEOUT_MS = 30_000;

/** A page of 100 objects of the largest size that is usual (pods with long environments, 100 KiB) has 10 MB. */
const RESPONSE_LIMIT_BYTES = 32 * 1024 * 1024;

/** A kept connection may be closed by the server at the very moment that we use it: a read is then sent again on another. */
const READ_ATTEMPTS = 3;

export interface HttpsClientOptions {
  /** @default 32 MiB */
  readonly responseLimitBytes?: number;
  /** How long an answer may take where a request does not say. @default 30 s */
  readonly timeoutMs?: number;
  /** @default usher */
  readonly userAgent?: string;
}

/** The answer does not fit into what we are willing to hold. */
export class TooLargeError extends ConnectionError {}

interface Exchange {
  readonly response: IncomingMessage;
  /** Ends the time limit and lets go of the caller's signal. */
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
  readonly #send: typeof httpsRequest;
  readonly #limit: number;
  readonly #timeoutMs: number;
  readonly #userAgent: string;
  #renewing: Promise<boolean> | undefined;
  #agent: Agent | undefined;

  constructor(credentials: Credentials, options: HttpsClientOptions) {
    const url = new URL(credentials.server);
    this.server = redactedUrl(credentials.server).replace(/\/+$/, "");
    this.#credentials = credentials;
    // In a URL an IPv6 address has brackets, for a socket it has none.
    const hostname = url.hostname.replace(/^\[|\]$/g, "");
    this.#base = { hostname, port: url.port === "" ? defaultPort(url) : Number(url.port) };
    this.#prefix = url.pathname.replace(/\/+$/, "");
    this.#send = url.protocol === "http:" ? httpRequest : httpsRequest;
    this.#limit = options.responseLimitBytes ?? RESPONSE_LIMIT_BYTES;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#userAgent = options.userAgent ?? "usher";
  }

  request = async (method: string, path: string, options: RequestOptions = {}): Promise<ApiResponse> => {
    const { response, done } = await this.#exchange(method, path, options);
    try {
      const text = await this.#textOf(response, `${method} ${path}`);
      return { status: statusOf(response), headers: headersOf(response), body: parsed(response, text), text };
    } catch (error) {
      throw asConnectionError(error, `${method} ${path}`);
    } finally {
      done();
    }
  };

  stream = async (path: string, options: { readonly signal?: AbortSignal } = {}): Promise<Stream> => {
    const { response, done } = await this.#exchange("GET", path, options);
    const status = statusOf(response);
    const headers = headersOf(response);
    if (status >= 400) {
      try {
        const text = await this.#textOf(response, `GET ${path}`);
        return { status, headers, lines: only(text), close: () => undefined };
      } catch (error) {
        throw asConnectionError(error, `GET ${path}`);
      } finally {
        done();
      }
    }
    // From here on the caller says how long it may take: whoever watches knows best when a silence is too long.
    done();
    let closed = false;
    const close = (): void => {
      closed = true;
      response.destroy();
    };
    options.signal?.addEventListener("abort", close, { once: true });
    response.once("close", () => options.signal?.removeEventListener("abort", close));
    if (options.signal?.aborted) close();
    return { status, headers, lines: linesUntil(() => closed, response, path), close };
  };

  closeIdleConnections = (): void => {
    if (this.#agent !== undefined) closeIdleSockets(this.#agent);
  };

  close = (): void => this.#credentials.close();

  async #exchange(method: string, path: string, given: RequestOptions): Promise<Exchange> {
    let access = await this.#access();
    const { timeoutMs = this.#timeoutMs } = given;
    const options = { ...given, timeoutMs, until: performance.now() + timeoutMs };
    let renewed = false;
    for (let attempt = 1; ; attempt++) {
      const sent = this.#sending(method, path, options, access);
      const response = await sent.response.catch(async (error: unknown) => {
        sent.done();
        if (isCertificateError(error)) await this.#renew();
        else if (method === "GET" && sent.stale && attempt < READ_ATTEMPTS) return undefined;
        throw asConnectionError(error, `${method} ${path}`);
      });
      if (response !== undefined) {
        if (statusOf(response) !== 401 || renewed) return { response, done: sent.done };
        // Refused before anything was done, so even a write may be sent again. Once, and only with something new to show.
        renewed = true;
        const outdated = await this.#outdated(access).catch((error: unknown) => {
          leave(response, sent);
          throw error;
        });
        if (!outdated) return { response, done: sent.done };
        leave(response, sent);
      }
      access = await this.#access();
    }
  }

  #sending(method: string, path: string, options: TimedOptions, access: Access): PendingRequest {
    try {
      if (performance.now() >= options.until) throw timeoutError(options);
      return new PendingRequest(this.#send, this.#options(method, path, options, access), options);
    } catch (error) {
      // Also where Node refuses to begin, as with a client certificate that is none.
      throw asConnectionError(error, `${method} ${path}`);
    }
  }

  async #access(): Promise<Access> {
    try {
      const access = await this.#credentials.access();
      this.#agent = access.agent;
      return access;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new ConnectionError(`no credentials for ${this.server}: ${why}`, { cause: error });
    }
  }

  /** Whether there are other credentials than those that were refused. Of many that are refused together, the first has renewed. */
  async #outdated(refused: Access): Promise<boolean> {
    const { agent, headers } = await this.#access();
    return agent !== refused.agent || !isDeepStrictEqual(headers, refused.headers) || this.#renew();
  }

  /** Once for all who ask meanwhile: it may start a program. */
  #renew(): Promise<boolean> {
    this.#renewing ??= this.#credentials
      .renew()
      .catch(() => false)
      .finally(() => {
        this.#renewing = undefined;
      });
    return this.#renewing;
  }

  #options(method: string, path: string, options: RequestOptions, access: Access): NodeOptions {
    const headers: Record<string, string> = {
      accept: "application/json",
      "user-agent": this.#userAgent,
      ...access.headers,
    };
    if (options.body !== undefined) headers["content-type"] = options.contentType ?? "application/json";
    return { ...this.#base, agent: access.agent, method, path: this.#prefix + path, headers };
  }

  async #textOf(response: IncomingMessage, what: string): Promise<string> {
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > this.#limit) {
        response.destroy();
        throw new TooLargeError(`${what}: the answer has more than ${this.#limit} bytes`);
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks, length).toString("utf8");
  }
}

/** What nobody reads must still come to its end, or be ended by its time limit: until then it holds a connection. */
function leave(response: IncomingMessage, { done }: PendingRequest): void {
  if (response.closed) done();
  else response.once("close", done).resume();
}

async function* linesUntil(
  closed: () => boolean,
  response: IncomingMessage,
  path: string,
): AsyncGenerator<string> {
  try {
    yield* linesOf(response as AsyncIterable<Buffer>);
  } catch (error) {
    // What we closed ourselves just ends; what the other side broke is an error.
    if (!closed()) throw asConnectionError(error, `GET ${path}`);
  } finally {
    response.destroy();
  }
}

async function* only(text: string): AsyncGenerator<string> {
  yield text;
}

function parsed(response: IncomingMessage, text: string): Json | undefined {
  if (!(response.headers["content-type"] ?? "").includes("json")) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return flat;
}

function statusOf(response: IncomingMessage): number {
  return response.statusCode ?? 0;
}

function defaultPort({ protocol }: URL): number {
  return protocol === "http:" ? 80 : 443;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function isCertificateError(error: unknown): boolean {
  return /CERT|SIGNATURE|ERR_TLS|ERR_SSL/.test(codeOf(error));
}

function asConnectionError(error: unknown, what: string): ConnectionError {
  if (error instanceof TooLargeError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new ConnectionError(`${what}: ${why || codeOf(error)}`, { cause: error });
}
