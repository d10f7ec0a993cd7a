import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Evaluation } from "../../core/evaluate/round.ts";
import { factsOf, type Log } from "../../core/log.ts";
import type { Phase } from "../../core/module/hook.ts";
import type { Handle } from "../review/handle.ts";
import { type HttpResponse, textResponse } from "../review/http-response.ts";
import type { KeyPair } from "../tls/certificate.ts";
import { type ClientCheck, Clients } from "../tls/client-certificate.ts";
import { type Address, addressOf, listenError } from "./address.ts";
import { readBody, TOO_LARGE } from "./body.ts";
import { Connections } from "./connections.ts";
import type { Limits } from "./limits.ts";
import { PlainConnections } from "./plain-connections.ts";
import { UnfinishedBodies } from "./unfinished-bodies.ts";

export interface HttpsServerOptions {
  readonly bind: string;
  readonly port: number;
  readonly pair: KeyPair;
  readonly clients: ClientCheck | undefined;
  readonly limits: Limits;
  readonly handle: Handle;
  /** What follows an answer, once it is on its way. */
  readonly settle: (evaluation: Evaluation) => void;
  /** Told of every answer, after it was given to the socket. */
  readonly observe: (phase: Phase | undefined, status: number, seconds: number) => void;
  readonly log: Log;
  /** Whether requests of the form that API servers use are read the short way. @default true */
  readonly plain?: boolean | undefined;
}

export interface HttpsServer {
  readonly address: Address;
  readonly usePair: (pair: KeyPair) => void;
  /** From now on every answer closes its connection, so that the API server finds another instance. */
  readonly sayGoodbye: () => void;
  /** Takes no new connections, ends the idle ones and lets the others finish, for so long. */
  readonly finish: (withinMs: number) => Promise<void>;
}

const NOT_JSON = textResponse(415, "the content type must be application/json");
const ENCODED = textResponse(415, "a content encoding is not understood here: send the JSON as it is");
const NOT_POST = textResponse(405, "only POST is answered here");

const NO_ROOM = "too many requests are not whole yet: the oldest of them was ended";

/** Nobody got the answer. Not a code of HTTP, but the one that proxies have long used for this. */
const CALLER_GONE = 499;

/** Time to read an answer of one line, across any network that a webhook call survives. */
const LINGER_MS = 1_000;

/** The HTTPS side of the webhook. Resolves once it listens. */
export async function openHttpsServer(options: HttpsServerOptions): Promise<HttpsServer> {
  const { limits, handle, settle, observe, log } = options;
  const clients = options.clients === undefined ? undefined : new Clients(options.clients);
  const unfinished = new UnfinishedBodies(limits.unfinishedBytes, (bytes) => log.warn({ bytes }, NO_ROOM));
  let goodbye = false;

  const secure = (pair: KeyPair) => ({
    cert: pair.cert,
    key: pair.key,
    minVersion: "TLSv1.2" as const,
    ...(options.clients === undefined ? {} : { ca: options.clients.ca }),
  });

  const answered = (reply: HttpResponse, gone: boolean, started: number) => {
    observe(reply.phase, gone ? CALLER_GONE : reply.status, (performance.now() - started) / 1_000);
    if (!gone && reply.evaluation !== undefined) settle(reply.evaluation);
  };

  const send = (response: ServerResponse, reply: HttpResponse, started: number) => {
    if (response.destroyed) {
      answered(reply, true, started);
      return;
    }
    if (goodbye) response.shouldKeepAlive = false;
    const { status, type, body } = reply;
    const length = Buffer.byteLength(body);
    response.writeHead(status, { "Content-Type": type, "Content-Length": length });
    // A string, not a buffer: Node then writes head and body as one TLS record. One byte a character means ASCII, which
    // Latin-1 writes alike but faster.
    response.end(body, length === body.length ? "latin1" : "utf8");
    answered(reply, false, started);
  };

  const broke = (response: ServerResponse) => (error: unknown) => {
    log.error(factsOf(error), "a connection broke usher");
    response.destroy();
  };

  const answer = (request: IncomingMessage, response: ServerResponse) => {
    const started = performance.now();
    const dismissed = (reply: HttpResponse) => {
      dismiss(request, response, reply);
      observe(undefined, reply.status, (performance.now() - started) / 1_000);
    };
    const refused = unfit(request) ?? clients?.refuse(request.socket);
    if (refused !== undefined) {
      dismissed(refused);
      return;
    }
    readBody(request, limits.bodyBytes, unfinished, (body) => {
      if (body === TOO_LARGE) {
        dismissed(textResponse(413, `the body is larger than ${limits.bodyBytes} bytes`));
        return;
      }
      const reply = handle(body, request.url ?? "/", response, started);
      if (reply instanceof Promise)
        void reply.then((late) => send(response, late, started)).catch(broke(response));
      else send(response, reply, started);
    });
  };

  const server = createServer(
    {
      ...secure(options.pair),
      requestCert: clients !== undefined,
      // Judged with a sentence, not with a broken handshake that nobody can read.
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
        answer(request, response);
      } catch (error) {
        broke(response)(error);
      }
    },
  );
  const plain =
    options.plain === false
      ? undefined
      : new PlainConnections(server, {
          limits,
          handle,
          log,
          unfinished,
          goodbye: () => goodbye,
          welcome: (socket) => clients?.refuse(socket) === undefined,
          used: (socket) => connections.used(socket),
          answered,
        });
  const connections = new Connections(server, limits.connections);
  const port = await listen(server, options.bind, options.port);
  server.on("error", (error) => log.error(factsOf(error), "the webhook server has a fault"));
  return {
    address: addressOf("https", options.bind, port),
    usePair: (pair) => server.setSecureContext(secure(pair)),
    sayGoodbye: () => {
      goodbye = true;
    },
    finish: (withinMs) => {
      goodbye = true;
      const finished = connections.finish(withinMs);
      plain?.endIdle();
      return finished;
    },
  };
}

/** What can be told from the head of a request. */
function unfit({ method, headers }: IncomingMessage): HttpResponse | undefined {
  if (method !== "POST") return NOT_POST;
  const type = headers["content-type"];
  if (type !== "application/json" && !/^application\/json\s*(;|$)/i.test(type ?? "")) return NOT_JSON;
  const encoding = headers["content-encoding"];
  return encoding === undefined || encoding === "identity" ? undefined : ENCODED;
}

/**
 * Answers a request whose body is not wanted, and hangs up. Not at once: whoever is still sending when a connection is closed sees
 * it break, and may never read the answer. So what still comes is thrown away, for a while.
 */
function dismiss(
  request: IncomingMessage,
  response: ServerResponse,
  { status, type, body }: HttpResponse,
): void {
  response.shouldKeepAlive = false;
  if (status === 405) response.setHeader("Allow", "POST");
  response.writeHead(status, { "Content-Type": type, "Content-Length": Buffer.byteLength(body) });
  response.write(body);
  const end = () => {
    clearTimeout(timer);
    if (!response.destroyed) response.end();
  };
  const timer = setTimeout(end, LINGER_MS);
  request.once("end", end);
  request.once("close", end);
  request.resume();
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
