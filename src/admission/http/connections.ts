import type { IncomingMessage } from "node:http";
import type { Server, Socket } from "node:net";

/** Time for a request that was on its way when the server stopped listening. */
const UNUSED_MS = 1_000;

/**
 * The connections of a server, for its limit and its shutdown. Node closes connections that are idle after a request,
 * but not those in their handshake, and waits for those that never had a request: API servers keep some in reserve, and
 * one of them would delay the shutdown to its limit.
 */
export class Connections {
  readonly #server: Server;
  /** Without a request so far, including those in their handshake. By remote address, oldest first. */
  readonly #unused = new Map<string, Socket>();
  /** By remote address, in the order of their last requests. */
  readonly #used = new Map<string, Socket>();
  readonly #onClosed: () => void;

  /**
   * Above the limit a connection is closed for a new one: the oldest unused one, or else the one with the oldest last
   * request. `onClosed` is called for each of them.
   */
  constructor(server: Server, most: number, onClosed: () => void = () => undefined) {
    this.#server = server;
    this.#onClosed = onClosed;
    server.on("connection", (socket: Socket) => {
      const remote = remoteOf(socket);
      if (this.#unused.size + this.#used.size >= most) this.#closeOne();
      this.#unused.set(remote, socket);
      socket.once("close", () => {
        if (this.#unused.get(remote) === socket) this.#unused.delete(remote);
        if (this.#used.get(remote) === socket) this.#used.delete(remote);
      });
    });
    server.on("request", (request: IncomingMessage) => {
      // With TLS the request has another socket than the connection.
      const remote = remoteOf(request.socket);
      const socket = this.#unused.get(remote) ?? this.#used.get(remote);
      if (socket === undefined) return;
      this.#unused.delete(remote);
      this.#used.delete(remote);
      this.#used.set(remote, socket);
    });
  }

  #closeOne(): void {
    for (const connections of [this.#unused, this.#used]) {
      for (const [remote, socket] of connections) {
        // Immediately, not on its event: many connections may arrive in one turn of the loop, and each needs another
        // one closed.
        connections.delete(remote);
        socket.destroy();
        this.#onClosed();
        return;
      }
    }
  }

  /** Stops listening, closes unused connections and waits at most this long for the others. */
  finish(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const closeUnused = () => {
        for (const socket of this.#unused.values()) socket.destroy();
      };
      const unused = setTimeout(closeUnused, Math.min(UNUSED_MS, withinMs));
      const late = setTimeout(() => {
        closeUnused();
        for (const socket of this.#used.values()) socket.destroy();
      }, withinMs);
      // Also closes idle connections; the others close with their response.
      this.#server.close(() => {
        clearTimeout(unused);
        clearTimeout(late);
        resolve();
      });
    });
  }
}

/** Unique for each connection, as a server has one address. */
function remoteOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/**
 * Requests that wait for facts, by connection. Node keeps reading while one is evaluated, so a client could pipeline
 * any number of them; API servers never do. A connection with too many of them is closed.
 */
export class Pipelining {
  readonly #most: number;
  readonly #requests = new Map<Socket, number>();
  readonly #onClosed: () => void;

  constructor(most: number, onClosed: () => void = () => undefined) {
    this.#most = most;
    this.#onClosed = onClosed;
  }

  add(socket: Socket): void {
    const requests = (this.#requests.get(socket) ?? 0) + 1;
    this.#requests.set(socket, requests);
    if (requests <= this.#most || socket.destroyed) return;
    socket.destroy();
    this.#onClosed();
  }

  remove(socket: Socket): void {
    const requests = (this.#requests.get(socket) ?? 0) - 1;
    if (requests > 0) this.#requests.set(socket, requests);
    else this.#requests.delete(socket);
  }
}
