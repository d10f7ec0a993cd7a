/**
 * The network between processes and API servers: usher's own Client over a simulated API server, with delays, cuts,
 * silence, half-open connections, and answers that are lost after the request was processed.
 */
import {
  type ApiResponse,
  type Client,
  ConnectionError,
  type RequestOptions,
  type Stream,
} from "../../src/cluster/client/client.ts";
import type { Json } from "../../src/core/json.ts";
import type { Runtime, SimulatedProcess } from "./runtime.ts";

/** A request as an API server gets it. */
export interface ServerRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: Json;
  readonly contentType?: string;
  readonly accept?: string;
  readonly user?: { readonly username: string; readonly groups: readonly string[] };
}

/** One API server. */
interface Server {
  readonly handle: (request: ServerRequest) => Promise<ApiResponse>;
  readonly open: (request: ServerRequest) => Stream;
}

/** The condition of all connections of one process. */
export interface Link {
  /** Which API server new connections lead to. */
  server: number;
  /** Added to each transit, up to this. */
  delayMs: number;
  /** Connections are refused. */
  cut: boolean;
  /** Half of the requests arrive, no answer does; events of watches wait. */
  silent: boolean;
  /** Watches get no events, all or those of this resource, and requests pass: the view is old. */
  stalled: boolean | string;
  /** Requests are processed, and then the connection breaks. */
  losesAnswers: boolean;
  /** The API server answers half of the requests 429, or all of those about this resource. */
  busy: boolean | string;
  /** Writes are answered with an error of etcd, and not processed. */
  readOnly: boolean;
  /** Writes are processed and answered with an error of etcd. */
  unsure: boolean;
}

export const GOOD_LINK: Link = {
  server: 0,
  delayMs: 0,
  cut: false,
  silent: false,
  stalled: false,
  losesAnswers: false,
  busy: false,
  readOnly: false,
  unsure: false,
};

/** One way, as in a cluster. */
const TRANSIT_MS = { least: 0.3, most: 4 };

/** A request that an API server has processed. */
interface Processed {
  readonly process: SimulatedProcess;
  /** Its number among all requests of processes of this name. */
  readonly number: number;
  /** The number of the last request that was processed when this one was sent. */
  readonly sentAfter: number;
  readonly method: string;
  readonly path: string;
  readonly body: Json | undefined;
  readonly response: ApiResponse;
}

interface Connection {
  /** The other side resets the connection. */
  readonly reset: () => void;
  /** The other side forgets the connection without a word. */
  readonly forget: () => void;
}

export class Network {
  readonly #runtime: Runtime;
  readonly #servers: readonly Server[];
  readonly #random: () => number;
  readonly #links = new Map<string, Link>();
  readonly #connections = new Map<string, Set<Connection>>();
  readonly #trace: (line: string) => void;
  /** Called when a process sends a request. */
  onSent: (process: SimulatedProcess, method: string, path: string) => void = () => undefined;
  /** Called when a request was processed, before its answer is sent. */
  onProcessed: (processed: Processed) => void = () => undefined;
  /** How many requests of each name were processed. */
  readonly #processed = new Map<string, number>();

  constructor(runtime: Runtime, servers: readonly Server[], trace: (line: string) => void) {
    this.#runtime = runtime;
    this.#servers = servers;
    this.#random = runtime.randomFor("network");
    this.#trace = trace;
  }

  link(process: string): Link {
    const known = this.#links.get(process);
    if (known !== undefined) return known;
    const link = { ...GOOD_LINK };
    this.#links.set(process, link);
    return link;
  }

  /** The process has ended: half of the requests that it has sent still arrive, and nothing hears the answers. */
  abandon(process: string): void {
    for (const one of [...(this.#connections.get(process) ?? [])]) if (this.#random() < 0.5) one.reset();
    this.#connections.delete(process);
  }

  /** Breaks all connections of a process. */
  reset(process: string): void {
    for (const one of [...(this.#connections.get(process) ?? [])]) one.reset();
  }

  /** Leaves all connections of a process half-open: nothing comes any more, and nothing says so. */
  forget(process: string): void {
    for (const one of [...(this.#connections.get(process) ?? [])]) one.forget();
  }

  transit(process: string): number {
    const { delayMs } = this.link(process);
    const { least, most } = TRANSIT_MS;
    return least + (most - least) * this.#random() ** 2 + delayMs * this.#random();
  }

  /** A client of this process, with the timeout of one request. */
  clientOf(process: SimulatedProcess, user: ServerRequest["user"], timeoutMs: number): Client {
    return {
      server: "https://simulated.invalid",
      request: (method, path, options = {}) =>
        this.#request(process, user, method, path, { timeoutMs, ...options }),
      stream: (path, options = {}) => this.#stream(process, user, path, timeoutMs, options.signal),
      close: () => undefined,
    };
  }

  #request(
    process: SimulatedProcess,
    user: ServerRequest["user"],
    method: string,
    path: string,
    options: RequestOptions & { readonly timeoutMs: number },
  ): Promise<ApiResponse> {
    if (process.alive) this.onSent(process, method, path);
    const { name } = process;
    const sentAfter = this.#processed.get(name) ?? 0;
    const exchange = this.#exchange<ApiResponse>(process, method, path, options);
    const { body, contentType } = options;
    const accept = options.accept === undefined ? {} : { accept: options.accept };
    this.#send(process, exchange, async (server) => {
      const request = {
        method,
        path,
        ...(user === undefined ? {} : { user }),
        ...(body === undefined ? {} : { body, contentType: contentType ?? "application/json" }),
        ...accept,
      };
      const link = this.link(process.name);
      const refused = this.#isBusy(link, path)
        ? BUSY
        : link.readOnly && method !== "GET"
          ? NO_LEADER
          : undefined;
      const response = refused ?? (await server.handle(request));
      this.#trace(`${process.name} ${method} ${path} → ${response.status}${versionIn(response.body)}`);
      const number = 1 + (this.#processed.get(name) ?? 0);
      this.#processed.set(name, number);
      this.onProcessed({ process, number, sentAfter, method, path, body, response });
      const answer = link.unsure && method !== "GET" ? UNSURE : response;
      return () => exchange.resolve(answer);
    });
    return exchange.promise;
  }

  #isBusy({ busy }: Link, path: string): boolean {
    return typeof busy === "string" ? path.includes(`/${busy}`) : busy && this.#random() < 0.5;
  }

  #stream(
    process: SimulatedProcess,
    user: ServerRequest["user"],
    path: string,
    timeoutMs: number,
    signal: AbortSignal | undefined,
  ): Promise<Stream> {
    const exchange = this.#exchange<Stream>(process, "WATCH", path, { timeoutMs, ...(signal && { signal }) });
    this.#send(process, exchange, async (server) => {
      if (this.link(process.name).busy === true) {
        const { status, headers, text } = BUSY;
        return () => exchange.resolve({ status, headers, lines: only(text), close: () => undefined });
      }
      const opened = server.open({ method: "GET", path, ...(user === undefined ? {} : { user }) });
      this.#trace(`${process.name} WATCH ${path} → ${opened.status}`);
      const lines = this.#follow(process, path, opened, signal);
      return () =>
        exchange.resolve({
          status: opened.status,
          headers: opened.headers,
          lines: lines.lines,
          close: lines.close,
        });
    });
    return exchange.promise;
  }

  /** Sends to the API server, calls it there, and brings the answer back, unless something comes in between. */
  #send(
    process: SimulatedProcess,
    exchange: Pick<Exchange<never>, "lost" | "fail">,
    call: (server: Server) => Promise<() => void>,
  ): void {
    if (!process.alive) return;
    const { name } = process;
    const link = this.link(name);
    if (link.cut) {
      this.#runtime.schedule(1, () => exchange.fail("connect ECONNREFUSED"), process);
      return;
    }
    const server = this.#servers[link.server % this.#servers.length] as Server;
    if (link.silent && this.#random() < 0.5) return;
    const arrive = async () => {
      if (exchange.lost) return;
      const deliver = await call(server);
      if (exchange.lost || link.silent) return;
      if (link.losesAnswers)
        this.#runtime.schedule(this.transit(name), () => exchange.fail("socket hang up"), process);
      else this.#runtime.schedule(this.transit(name), () => exchange.lost || deliver(), process);
    };
    this.#runtime.schedule(this.transit(name), () => void arrive());
  }

  #exchange<T>(
    process: SimulatedProcess,
    method: string,
    path: string,
    options: RequestOptions & { readonly timeoutMs: number },
  ): Exchange<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const { signal, timeoutMs } = options;
    const what = `${method} ${path}`;
    const connections = this.#connectionsOf(process.name);
    let over = false;
    const end = (finish: () => void): void => {
      if (over) return;
      over = true;
      timer.run = undefined;
      connections.delete(connection);
      signal?.removeEventListener("abort", cancel);
      finish();
    };
    const exchange: Exchange<T> = {
      promise,
      lost: false,
      resolve: (value) => end(() => resolve(value)),
      fail: (why) => end(() => reject(new ConnectionError(`${what}: ${why}`))),
    };
    const cancel = (): void => {
      exchange.lost = true;
      exchange.fail("canceled by the caller");
    };
    const timer = this.#runtime.schedule(
      timeoutMs / process.rate,
      () => exchange.fail(`no complete response within ${timeoutMs} ms`),
      process,
    );
    timer.timer = true;
    const connection: Connection = {
      reset: () => {
        exchange.lost = true;
        this.#runtime.schedule(0, () => exchange.fail("socket hang up"), process);
      },
      forget: () => {
        exchange.lost = true;
      },
    };
    connections.add(connection);
    if (signal?.aborted) queueMicrotask(cancel);
    else signal?.addEventListener("abort", cancel, { once: true });
    return exchange;
  }

  /** The lines of a watch, in their order, each after its transit. */
  #follow(process: SimulatedProcess, path: string, opened: Stream, signal: AbortSignal | undefined) {
    const { name } = process;
    const runtime = this.#runtime;
    const lines = new Lines();
    const connections = this.#connectionsOf(name);
    let lost = false;
    let arrival = 0;
    const close = (): void => {
      connections.delete(connection);
      signal?.removeEventListener("abort", close);
      opened.close();
      lines.end();
    };
    const connection: Connection = {
      reset: () => {
        lost = true;
        opened.close();
        connections.delete(connection);
        runtime.schedule(0, () => lines.end(new ConnectionError(`GET ${path}: socket hang up`)), process);
      },
      forget: () => {
        lost = true;
        opened.close();
        connections.delete(connection);
      },
    };
    connections.add(connection);
    if (signal?.aborted) queueMicrotask(close);
    else signal?.addEventListener("abort", close, { once: true });
    const waiting: (() => void)[] = [];
    const isHeld = ({ silent, stalled }: Link): boolean =>
      silent ||
      (typeof stalled === "string" ? path.split("?")[0]?.endsWith(`/${stalled}`) === true : stalled);
    const deliver = (take: () => void): void => {
      const link = this.link(name);
      if (lost || !process.alive) return;
      if (isHeld(link) || waiting.length > 0) {
        waiting.push(take);
        if (waiting.length === 1) retry();
        return;
      }
      arrival = Math.max(arrival, runtime.now + this.transit(name));
      runtime.schedule(arrival - runtime.now, () => lost || take(), process);
    };
    // What was sent during silence comes after it, as TCP repeats it.
    const retry = (): void => {
      runtime.schedule(RETRY_MS, () => {
        const link = this.link(name);
        if (lost || !process.alive) return;
        if (isHeld(link)) return retry();
        for (const take of waiting.splice(0)) deliver(take);
      });
    };
    const pump = async () => {
      for await (const line of opened.lines) {
        if (lost || !process.alive) return;
        deliver(() => lines.add(line));
      }
      deliver(() => {
        connections.delete(connection);
        lines.end();
      });
    };
    void pump();
    return { lines: lines.all(), close };
  }

  #connectionsOf(process: string): Set<Connection> {
    const known = this.#connections.get(process) ?? new Set();
    this.#connections.set(process, known);
    return known;
  }
}

/** TCP repeats lost segments about this often. */
const RETRY_MS = 200;

/** A request and its answer. */
interface Exchange<T> {
  readonly promise: Promise<T>;
  /** Nothing of it arrives any more, at either side. */
  lost: boolean;
  readonly resolve: (value: T) => void;
  readonly fail: (why: string) => void;
}

/** Lines that arrive one after the other, for one reader. */
class Lines {
  readonly #arrived: string[] = [];
  #ended: { readonly error: Error | undefined } | undefined;
  #wake: (() => void) | undefined;

  add(line: string): void {
    this.#arrived.push(line);
    this.#wake?.();
  }

  end(error?: Error): void {
    this.#ended ??= { error };
    this.#wake?.();
  }

  async *all(): AsyncGenerator<string> {
    for (;;) {
      const line = this.#arrived.shift();
      if (line !== undefined) yield line;
      else if (this.#ended !== undefined) {
        if (this.#ended.error !== undefined) throw this.#ended.error;
        return;
      } else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

async function* only(line: string): AsyncGenerator<string> {
  yield line;
}

function status(code: number, reason: string, message: string): Json {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", code, reason, message };
}

function failure(
  code: number,
  reason: string,
  message: string,
  headers: ApiResponse["headers"],
): ApiResponse {
  const body = status(code, reason, message);
  return { status: code, headers, body, text: JSON.stringify(body) };
}

const BUSY = failure(429, "TooManyRequests", "too many requests, please try again later", {
  "retry-after": "1",
});
const NO_LEADER = failure(500, "InternalError", "etcdserver: no leader", {});
const UNSURE = failure(500, "InternalError", "etcdserver: request timed out", {});

function versionIn(body: Json | undefined): string {
  const metadata = (body as { metadata?: { resourceVersion?: string } } | undefined)?.metadata;
  return metadata?.resourceVersion === undefined ? "" : ` version ${metadata.resourceVersion}`;
}
