import { LONGEST_CALL_MS } from "../review/routes.ts";

/** The server's limits on clients. Every limit can be set, so that tests need not wait. */
export interface ServerLimits {
  readonly bodyBytes: number;
  /** Over all connections: unfinished requests, requests that wait for facts, unread responses. */
  readonly inFlightBytes: number;
  readonly connections: number;
  /** Requests of one connection that wait for facts at the same time. */
  readonly pipelined: number;
  readonly headerBytes: number;
  readonly handshakeMs: number;
  readonly headersMs: number;
  readonly requestMs: number;
  readonly keepAliveMs: number;
  readonly checkEveryMs: number;
  readonly finishMs: number;
}

/**
 * etcd stores at most 1.5 MiB of protobuf, and one byte becomes up to six of JSON: Go writes `<` as `\u003c`, and the
 * names of empty fields take no more. An UPDATE carries two such objects, and 2 MiB are for the envelope. A request may
 * bring a larger object, which etcd then refuses.
 */
const BODY_BYTES = 20 * 1024 * 1024;

/**
 * Two of the largest bodies, which are read in sequence, and a tenth of the container's memory; bodies of a busy
 * cluster have some kilobytes each and arrive with their first packets.
 */
const IN_FLIGHT_BYTES = 48 * 1024 * 1024;

/**
 * Each takes some 90 KB, so all of them take a sixth of the container's memory. An API server keeps 25, and more only
 * while more calls are in flight: by default at most 200 requests that write.
 */
const CONNECTIONS = 1_000;

/** Go's client sends a request only after the previous response. Some proxies send a few at once. */
const PIPELINED = 16;

/** Node's own default. The API server sends some 300 bytes of headers. */
const HEADER_BYTES = 16 * 1024;

/** A TLS handshake is two round trips and one signature. */
const HANDSHAKE_MS = 10_000;

/** The API server writes its headers immediately. Also ends a connection on which nothing is sent. */
const HEADERS_MS = 10_000;

/** By then the client's own timeout is over. */
const REQUEST_MS = LONGEST_CALL_MS;

/**
 * The API server closes a connection that was idle for 90 s, and never repeats a POST. So the server must keep it
 * longer: otherwise it could close a connection while the API server is writing, and the call fails.
 */
const KEEP_ALIVE_MS = 120_000;

/** How often Node checks the timeouts of connections. With its default of 30 s, ten seconds would become forty. */
const CHECK_EVERY_MS = 1_000;

/** How long draining waits for requests in flight: no call may take longer. */
const FINISH_MS = LONGEST_CALL_MS;

export const LIMITS: ServerLimits = {
  bodyBytes: BODY_BYTES,
  inFlightBytes: IN_FLIGHT_BYTES,
  connections: CONNECTIONS,
  pipelined: PIPELINED,
  headerBytes: HEADER_BYTES,
  handshakeMs: HANDSHAKE_MS,
  headersMs: HEADERS_MS,
  requestMs: REQUEST_MS,
  keepAliveMs: KEEP_ALIVE_MS,
  checkEveryMs: CHECK_EVERY_MS,
  finishMs: FINISH_MS,
};
