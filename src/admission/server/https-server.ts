import { constants } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { factsOf, type Log } from "../../core/log.ts";
import type { Phase } from "../../core/module/hook.ts";
import type { AggregatedServing } from "../aggregated/aggregated.ts";
import type { ConnectionLimit } from "../observe/metrics/metrics.ts";
import type { ReviewTrace, ReviewTracer } from "../observe/tracing/tracing.ts";
import type { Handle } from "../review/handle.ts";
import type { HttpResponse } from "../review/http-response.ts";
import { LARGE_REVIEW, parsedBytes } from "../review/structure.ts";
import type { KeyPair } from "../tls/certificate.ts";
import { ClientCertificates, type ClientCheck } from "../tls/client-certificate.ts";
import { type Address, addressOf, listenError } from "./address.ts";
import { readBody } from "./body.ts";
import { BytesInFlight } from "./bytes-in-flight.ts";
import { Connections, Pipelining } from "./connections.ts";
import { LargeReviews } from "./large-reviews.ts";
import type { Limits } from "./limits.ts";
import { refusedByHead, sendAndClose } from "./refusal.ts";

export interface HttpsServerOptions {
  readonly bind: string;
  readonly port: number;
  readonly pair: KeyPair;
  readonly clients: ClientCheck | undefined;
  /** Serves an aggregated API beside the webhooks; excludes `clients`. @default none */
  readonly aggregated?: AggregatedServing | undefined;
  readonly limits: Limits;
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

export interface HttpsServer {
  readonly address: Address;
  readonly usePair: (pair: KeyPair) => void;
  /** From now on every response closes its connection, so that the API server connects to another instance. */
  readonly startDraining: () => void;
  /** Stops listening, ends idle connections and waits for requests in flight, at most so long. */
  readonly finish: (withinMs: number) => Promise<void>;
}

const NO_ROOM = "too many bytes in flight: closed the connection that kept some for longest";

/** The client closed the connection before the response. Not a code of HTTP, but the one that proxies have long used for this. */
export const CLIENT_CLOSED_REQUEST = 499;

/** Fits into the kernel's send buffer, and Node reads no further request of a connection whose client leaves more than 64 KiB unread. */
const SMALL_RESPONSE_BYTES = 16 * 1024;

/** The HTTPS server of the webhooks. Node reads every request and writes every response. Resolves once it listens. */
export async function openHttpsServer(options: HttpsServerOptions): Promise<HttpsServer> {
  const { limits, handle, aggregated, afterResponse, observe, connectionClosed, tracing, log } = options;
  if (aggregated !== undefined && options.clients !== undefined)
    throw new Error(
      "an aggregated API authenticates clients by the front proxy: it can't be served with --client-ca",
    );
  const clients = options.clients === undefined ? undefined : new ClientCertificates(options.clients);
  const inFlight = new BytesInFlight(limits.inFlightBytes, (bytes) => {
    connectionClosed("bytes");
    log.warn({ bytes }, NO_ROOM);
  });
  const largeReviews = new LargeReviews();
  const pipelining = new Pipelining(limits.pipelined, () => connectionClosed("requests"));
  const asksForCertificates = clients !== undefined || aggregated !== undefined;
  let { pair: served } = options;
  let draining = false;

  const secure = (pair = served) => ({
    cert: pair.cert,
    key: pair.key,
    minVersion: "TLSv1.2" as const,
    // Each renegotiation costs a signature, and a client may ask for any number. Go's client never does, and TLS 1.3 has none.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(asksForCertificates ? { ca: aggregated?.ca ?? options.clients?.ca ?? [] } : {}),
  });

  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const started = performance.now();
    if (aggregated?.serves(request.url ?? "/") === true) {
      serveAggregated(aggregated, request, response, started);
      return;
    }
    const refused = refusedByHead(request) ?? clients?.refuse(request.socket);
    if (refused !== undefined) refuse(request, response, refused, started);
    else receive(request, response, handle, started);
  };

  const serveAggregated = (
    serving: AggregatedServing,
    request: IncomingMessage,
    response: ServerResponse,
    started: number,
  ) => {
    const { socket } = request;
    pipelining.add(socket);
    // Node goes on with what it has read already of a connection that was closed for too many.
    if (socket.destroyed) {
      pipelining.remove(socket);
      return;
    }
    void serving
      .admit(request, response, started)
      .then((admitted) => {
        const result = typeof admitted === "function" ? refusedByHead(request) : admitted;
        if (result === undefined) receive(request, response, admitted as Handle, started);
        else if (result.status < 300 || response.destroyed) send(response, result, started);
        else refuse(request, response, result, started);
      })
      .catch((error: unknown) => abort(response, error))
      .finally(() => pipelining.remove(socket));
  };

  const receive = (request: IncomingMessage, response: ServerResponse, review: Handle, started: number) => {
    const judge = (body: Buffer, isWhole: boolean) => {
      const trace = tracing?.begin(request.headers, started);
      const tooLong = isWhole ? undefined : `the body has more than ${limits.bodyBytes} bytes`;
      const result = review(body, request.url ?? "/", response, started, trace, tooLong);
      const reply = (known: HttpResponse) => send(response, known, started, trace, isWhole);
      if (!(result instanceof Promise)) {
        reply(result);
        return;
      }
      const { socket } = request;
      const parsed = parsedBytes(body);
      // Those that are larger are counted where they are parsed.
      const bytes = isWhole && parsed <= LARGE_REVIEW ? parsed : 0;
      pipelining.add(socket);
      inFlight.add(socket, bytes);
      void result
        .then(reply)
        .catch((error: unknown) => abort(response, error))
        .finally(() => {
          pipelining.remove(socket);
          inFlight.remove(socket, bytes);
        });
    };
    largeReviews.take(request, (inTurn) => readBody(request, limits.bodyBytes, inFlight, judge, inTurn));
  };

  const send = (
    response: ServerResponse,
    result: HttpResponse,
    started: number,
    trace?: ReviewTrace,
    isWhole = true,
  ) => {
    const { status, type, body, phase, evaluation } = result;
    const closed = response.destroyed;
    if (!closed && !isWhole) sendAndClose(response.req, response, result);
    else if (!closed) {
      if (draining) response.shouldKeepAlive = false;
      const length = Buffer.byteLength(body);
      response.writeHead(status, { "Content-Type": type, "Content-Length": length });
      // A string, not a buffer: Node then writes head and body as one TLS record. One byte a character means ASCII, which
      // Latin-1 writes alike but faster.
      response.end(body, length === body.length ? "latin1" : "utf8");
      if (length > SMALL_RESPONSE_BYTES) countUnread(response, length);
    }
    const seen = closed ? CLIENT_CLOSED_REQUEST : status;
    observe(phase, seen, (performance.now() - started) / 1_000);
    if (!closed && evaluation !== undefined) afterResponse(evaluation);
    trace?.end({ status: seen, phase, evaluation });
  };

  const countUnread = (response: ServerResponse, bytes: number) => {
    const { socket } = response.req;
    inFlight.add(socket, bytes);
    response.once("close", () => inFlight.remove(socket, bytes));
  };

  const refuse = (
    request: IncomingMessage,
    response: ServerResponse,
    refusal: HttpResponse,
    started: number,
  ) => {
    sendAndClose(request, response, refusal);
    observe(undefined, refusal.status, (performance.now() - started) / 1_000);
  };

  const abort = (response: ServerResponse, error: unknown) => {
    log.error(factsOf(error), "internal error serving a connection");
    response.destroy();
  };

  const server = createServer(
    {
      ...secure(),
      requestCert: asksForCertificates,
      // Refused with a message: a failed handshake does not say why.
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
        serve(request, response);
      } catch (error) {
        abort(response, error);
      }
    },
  );
  // Ends a connection whose client stopped reading: no bytes in either direction for as long as an idle connection may last.
  server.timeout = limits.keepAliveMs;
  const connections = new Connections(server, limits.connections, () => connectionClosed("connections"));
  const authorities = aggregated?.follow(() => server.setSecureContext(secure()));
  server.once("close", () => authorities?.stop());
  const port = await listen(server, options.bind, options.port);
  server.on("error", (error) => log.error(factsOf(error), "HTTPS server error"));
  return {
    address: addressOf("https", options.bind, port),
    usePair: (pair) => {
      server.setSecureContext(secure(pair));
      served = pair;
    },
    startDraining: () => {
      draining = true;
    },
    finish: (withinMs) => {
      draining = true;
      return connections.finish(withinMs);
    },
  };
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
