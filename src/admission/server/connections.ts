import type { IncomingMessage } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";

/** Time for a request that was on its way when the server stopped listening. */
const UNUSED_MS = 1_000;

/**
 * The connections of a server, for its limit and its shutdown. Node closes those that are idle after a request, but not those in their
 * handshake, and waits for those that never had a request: API servers keep some in reserve, and one of them would delay the shutdown
 * to its limit.
 */
export class Connections {
  readonly #server: Server;
  readonly #all = new Set<Socket>();
  /** In their handshake, by remote address. */
  readonly #new = new Map<string, Socket>();
  /** Past their handshake, without a request so far. */
  readonly #unused = new Set<Socket>();

  /** Above the limit an unused connection is closed, or the newest where all are in use. */
  constructor(server: Server, most: number) {
    this.#server = server;
    server.on("connection", (socket: Socket) => {
      if (this.#all.size >= most) {
        const [closing = socket] = [...this.#unused, ...this.#new.values()];
        closing.destroy();
        if (closing === socket) return;
      }
      const remote = remoteOf(socket);
      this.#all.add(socket);
      this.#new.set(remote, socket);
      socket.once("close", () => {
        this.#all.delete(socket);
        if (this.#new.get(remote) === socket) this.#new.delete(remote);
      });
    });
    server.on("secureConnection", (socket) => {
      this.#new.delete(remoteOf(socket));
      this.#unused.add(socket);
      socket.once("close", () => this.#unused.delete(socket));
    });
    server.on("request", ({ socket }: IncomingMessage) => this.#unused.delete(socket));
  }

  /** Stops listening, closes unused connections and waits for the others, at most so long. */
  finish(withinMs: number): Promise<void> {
    return new Promise((resolve) => {
      const unused = setTimeout(
        () => {
          for (const socket of [...this.#unused, ...this.#new.values()]) socket.destroy();
        },
        Math.min(UNUSED_MS, withinMs),
      );
      const late = setTimeout(() => {
        for (const socket of this.#all) socket.destroy();
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
 * Requests that wait for facts, by connection. Node reads on while one is evaluated, so a client could pipeline any number of them;
 * API servers never do. A connection with too many of them is closed.
 */
export class InFlight {
  readonly #most: number;
  readonly #requests = new Map<Socket, number>();

  constructor(most: number) {
    this.#most = most;
  }

  add(socket: Socket): void {
    const requests = (this.#requests.get(socket) ?? 0) + 1;
    this.#requests.set(socket, requests);
    if (requests > this.#most) socket.destroy();
  }

  remove(socket: Socket): void {
    const requests = (this.#requests.get(socket) ?? 0) - 1;
    if (requests > 0) this.#requests.set(socket, requests);
    else this.#requests.delete(socket);
  }
}
