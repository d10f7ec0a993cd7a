import { constants } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { factsOf, type Log } from "../../core/log.ts";
import type { Phase } from "../../core/module/hook.ts";
import type { AggregatedServing } from "../aggregated/aggregated.ts";
import { type Address, addressOf, listenError } from "../http/address.ts";
import { Connections, Pipelining } from "../http/connections.ts";
import type { HttpResponse } from "../http/http-response.ts";
import type { ConnectionLimit } from "../observe/metrics/metrics.ts";
import type { ReviewTrace, ReviewTracer } from "../observe/tracing/tracing.ts";
import type { Handle } from "../review/handle.ts";
import { LARGE_REVIEW, parsedBytes } from "../review/structure.ts";
import type { KeyPair } from "../tls/certificate.ts";
import { ClientCertificates, type ClientCheck } from "../tls/client-certificate.ts";
import { readBody } from "./body.ts";
import { BytesInFlight } from "./bytes-in-flight.ts";
import { LargeReviews } from "./large-reviews.ts";
import type { ServerLimits } from "./limits.ts";
import { refusedByHead, sendAndClose } from "./refusal.ts";

export interface HttpsServerOptions {
  readonly bind: string;
  readonly port: number;
  readonly pair: KeyPair;
  readonly clients: ClientCheck | undefined;
  /** Serves an aggregated API beside the webhooks; excludes `clients`. @default none */
  readonly aggregated?: AggregatedServing | undefined;
  readonly limits: ServerLimits;
  readonly handle: Handle;
  /** Runs once the response was handed to the socket. */
  readonly afterResponse: (evaluation: Evaluation) => void;
  /** Observes every response after it was handed to the socket. */
  readonly observe: (phase: Phase | undefined, status: number, seconds: number) => void;
  /** Called for each connection that was closed because of a limit. */
  readonly connectionClosed: (limit: ConnectionLimit) => void;
  /** @default reviews are not traced */
  readonly tracing?: ReviewTracer | undefined;
  readonly log: Log;
}

const NO_ROOM = "too many bytes in flight: closed the connection that held bytes for longest";

/** The client closed the connection before the response. Not a code of HTTP, but the conventional one of proxies. */
export const CLIENT_CLOSED_REQUEST = 499;

/** Fits into the kernel's send buffer, and Node reads no further request of a connection whose client leaves more than 64 KiB unread. */
const SMALL_RESPONSE_BYTES = 16 * 1024;

/** The HTTPS server of the webhooks. Node reads every request and writes every response. */
export class HttpsServer {
  readonly #options: HttpsServerOptions;
  readonly #clients: ClientCertificates | undefined;
  readonly #inFlight: BytesInFlight;
  readonly #largeReviews = new LargeReviews();
  readonly #pipelining: Pipelining;
  readonly #server: Server;
  readonly #connections: Connections;
  #pair: KeyPair;
  #address: Address | undefined;
  #draining = false;

  private constructor(options: HttpsServerOptions) {
    const { limits, aggregated, clients, connectionClosed, log } = options;
    if (aggregated !== undefined && clients !== undefined)
      throw new Error(
        "an aggregated API authenticates clients by the front proxy: it can't be served with --client-ca",
      );
    this.#options = options;
    this.#pair = options.pair;
    this.#clients = clients === undefined ? undefined : new ClientCertificates(clients);
    this.#inFlight = new BytesInFlight(limits.inFlightBytes, (bytes) => {
      connectionClosed("bytes");
      log.warn({ bytes }, NO_ROOM);
    });
    this.#pipelining = new Pipelining(limits.pipelined, () => connectionClosed("requests"));
    this.#server = createServer(
      {
        ...this.#secureContext(),
        requestCert: this.#asksForCertificates,
        // Refused with a message: a failed handshake has no reason.
        rejectUnauthorized: false,
        handshakeTimeout: limits.handshakeMs,
        keepAliveTimeout: limits.keepAliveMs,
        headersTimeout: limits.headersMs,
        requestTimeout: limits.requestMs,
        connectionsCheckingInterval: limits.checkEveryMs,
        maxHeaderSize: limits.headerBytes,
      },
      (request, response) => {
        try {
          this.#serve(request, response);
        } catch (error) {
          this.#abort(response, error);
        }
      },
    );
    // Ends a connection whose client stopped reading: no bytes in either direction for the idle timeout.
    this.#server.timeout = limits.keepAliveMs;
    this.#connections = new Connections(this.#server, limits.connections, () =>
      connectionClosed("connections"),
    );
    const authorities = aggregated?.follow(() => this.#server.setSecureContext(this.#secureContext()));
    this.#server.once("close", () => authorities?.stop());
  }

  /** Resolves once it listens. */
  static async open(options: HttpsServerOptions): Promise<HttpsServer> {
    const opened = new HttpsServer(options);
    const port = await listen(opened.#server, options.bind, options.port);
    opened.#server.on("error", (error) => options.log.error(factsOf(error), "HTTPS server error"));
    opened.#address = addressOf("https", options.bind, port);
    return opened;
  }

  get address(): Address {
    if (this.#address === undefined) throw new Error("the server does not listen yet");
    return this.#address;
  }

  usePair(pair: KeyPair): void {
    this.#server.setSecureContext(this.#secureContext(pair));
    this.#pair = pair;
  }

  /** From now on every response closes its connection, so that the API server connects to another instance. */
  startDraining(): void {
    this.#draining = true;
  }

  /** Stops listening, ends idle connections and waits at most this long for requests in flight. */
  finish(withinMs: number): Promise<void> {
    this.#draining = true;
    return this.#connections.finish(withinMs);
  }

  get #asksForCertificates(): boolean {
    return this.#clients !== undefined || this.#options.aggregated !== undefined;
  }

  #secureContext(pair = this.#pair) {
    const { aggregated, clients } = this.#options;
    return {
      cert: pair.cert,
      key: pair.key,
      minVersion: "TLSv1.2" as const,
      // Each renegotiation costs a signature, and a client may request any number. Go's client never does, and TLS 1.3
      // has none.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      ...(this.#asksForCertificates ? { ca: aggregated?.ca ?? clients?.ca ?? [] } : {}),
    };
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const { aggregated, handle } = this.#options;
    const started = performance.now();
    if (aggregated?.serves(request.url ?? "/") === true) {
      this.#serveAggregated(aggregated, request, response, started);
      return;
    }
    const refused = refusedByHead(request) ?? this.#clients?.refuse(request.socket);
    if (refused !== undefined) this.#refuse(request, response, refused, started);
    else this.#receive(request, response, handle, started);
  }

  #serveAggregated(
    serving: AggregatedServing,
    request: IncomingMessage,
    response: ServerResponse,
    started: number,
  ): void {
    const { socket } = request;
    this.#pipelining.add(socket);
    // Node continues with requests that it has already read from a connection that was closed for too many.
    if (socket.destroyed) {
      this.#pipelining.remove(socket);
      return;
    }
    void serving
      .admit(request, response, started)
      .then((admitted) => {
        const result = typeof admitted === "function" ? refusedByHead(request) : admitted;
        if (result === undefined) this.#receive(request, response, admitted as Handle, started);
        else if (result.status < 300 || response.destroyed) this.#send(response, result, started);
        else this.#refuse(request, response, result, started);
      })
      .catch((error: unknown) => this.#abort(response, error))
      .finally(() => this.#pipelining.remove(socket));
  }

  #receive(request: IncomingMessage, response: ServerResponse, review: Handle, started: number): void {
    const { limits, tracing } = this.#options;
    const judge = (body: Buffer, isWhole: boolean) => {
      const trace = tracing?.begin(request.headers, started);
      const tooLong = isWhole ? undefined : `the body has more than ${limits.bodyBytes} bytes`;
      const result = review(body, request.url ?? "/", response, started, trace, tooLong);
      const reply = (known: HttpResponse) => this.#send(response, known, started, trace, isWhole);
      if (!(result instanceof Promise)) {
        reply(result);
        return;
      }
      const { socket } = request;
      const parsed = parsedBytes(body);
      // Larger reviews are counted where they are parsed.
      const bytes = isWhole && parsed <= LARGE_REVIEW ? parsed : 0;
      this.#pipelining.add(socket);
      this.#inFlight.add(socket, bytes);
      void result
        .then(reply)
        .catch((error: unknown) => this.#abort(response, error))
        .finally(() => {
          this.#pipelining.remove(socket);
          this.#inFlight.remove(socket, bytes);
        });
    };
    this.#largeReviews.take(request, (inTurn) =>
      readBody(request, limits.bodyBytes, this.#inFlight, judge, inTurn),
    );
  }

  #send(
    response: ServerResponse,
    result: HttpResponse,
    started: number,
    trace?: ReviewTrace,
    isWhole = true,
  ): void {
    const { observe, afterResponse } = this.#options;
    const { status, type, body, phase, evaluation } = result;
    const closed = response.destroyed;
    if (!closed && !isWhole) sendAndClose(response.req, response, result);
    else if (!closed) {
      if (this.#draining) response.shouldKeepAlive = false;
      const length = Buffer.byteLength(body);
      response.writeHead(status, { "Content-Type": type, "Content-Length": length });
      // A string, not a buffer: Node then writes head and body as one TLS record. One byte per character means ASCII,
      // which Latin-1 encodes identically but faster.
      response.end(body, length === body.length ? "latin1" : "utf8");
      if (length > SMALL_RESPONSE_BYTES) this.#countUnread(response, length);
    }
    const seen = closed ? CLIENT_CLOSED_REQUEST : status;
    observe(phase, seen, (performance.now() - started) / 1_000);
    if (!closed && evaluation !== undefined) afterResponse(evaluation);
    trace?.end({ status: seen, phase, evaluation });
  }

  #countUnread(response: ServerResponse, bytes: number): void {
    const { socket } = response.req;
    this.#inFlight.add(socket, bytes);
    response.once("close", () => this.#inFlight.remove(socket, bytes));
  }

  #refuse(request: IncomingMessage, response: ServerResponse, refusal: HttpResponse, started: number): void {
    sendAndClose(request, response, refusal);
    this.#options.observe(undefined, refusal.status, (performance.now() - started) / 1_000);
  }

  #abort(response: ServerResponse, error: unknown): void {
    this.#options.log.error(factsOf(error), "internal error serving a connection");
    response.destroy();
  }
}

function listen(server: Server, bind: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) =>
      reject(listenError(error.code ?? error.message, bind, port, "--port"));
    server.once("error", failed);
    server.listen({ host: bind, port }, () => {
      server.removeListener("error", failed);
      resolve((server.address() as AddressInfo).port);
    });
  });
}
