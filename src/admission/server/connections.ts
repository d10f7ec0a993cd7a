import type { IncomingMessage } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";

/** As long as a request needs that was on its way when the door closed. */
const UNUSED_MS = 1_000;

/**
 * The connections of a server, for its end. Node ends those that have had a request and wait for the next, but knows nothing of
 * those still in their handshake, and waits for those that never had a request: API servers keep some in reserve, and one of them
 * would hold the end up to its very limit.
 */
export class Connections {
  readonly #server: Server;
  readonly #all = new Set<Socket>();
  /** In their handshake, by the other end. */
  readonly #new = new Map<string, Socket>();
  /** Past their handshake, and never used. */
  readonly #unused = new Set<Socket>();

  /** Where there are more, one that nobody has used yet gives way, or the newest where all are in use. */
  constructor(server: Server, most: number) {
    this.#server = server;
    server.on("connection", (socket: Socket) => {
      if (this.#all.size >= most) {
        const [spare = socket] = [...this.#unused, ...this.#new.values()];
        spare.destroy();
        if (spare === socket) return;
      }
      const end = otherEnd(socket);
      this.#all.add(socket);
      this.#new.set(end, socket);
      socket.once("close", () => {
        this.#all.delete(socket);
        if (this.#new.get(end) === socket) this.#new.delete(end);
      });
    });
    server.on("secureConnection", (socket) => {
      this.#new.delete(otherEnd(socket));
      this.#unused.add(socket);
      socket.once("close", () => this.#unused.delete(socket));
    });
    server.on("request", ({ socket }: IncomingMessage) => this.#unused.delete(socket));
  }

  /** Takes no new ones, ends those that nobody uses and lets the others finish, for so long. */
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
      // Also ends the connections that are idle; the others end with their answer.
      this.#server.close(() => {
        clearTimeout(unused);
        clearTimeout(late);
        resolve();
      });
    });
  }
}

/** One for each connection that there is: a server has but one address. */
function otherEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
