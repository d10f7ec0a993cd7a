import type { Server } from "node:https";
import type { TLSSocket } from "node:tls";
import { PlainConnection, type PlainHouse } from "./plain-connection.ts";

/** Told of a connection that goes over to Node. */
export const LEFT = "a request unlike those of API servers: Node reads this connection from here on";

/**
 * The connections of a server that are read here and not by Node. Each begins here, and goes over to Node with the first request that
 * is not of the plain form.
 */
export class PlainConnections {
  readonly #all = new Set<PlainConnection>();

  constructor(server: Server, options: Omit<PlainHouse, "leave">) {
    // Node's HTTP listens for connections past their handshake; from here on it hears of those that we hand over.
    const node = server.listeners("secureConnection");
    // Where a later Node does it otherwise, all connections are its own.
    if (node.length !== 1) return;
    server.removeAllListeners("secureConnection");
    const house: PlainHouse = {
      ...options,
      leave: (connection, socket) => {
        this.#all.delete(connection);
        options.log.debug({ from: socket.remoteAddress }, LEFT);
        for (const listener of node) listener.call(server, socket);
      },
    };
    server.on("secureConnection", (socket: TLSSocket) => {
      const connection = new PlainConnection(socket, house);
      this.#all.add(connection);
      socket.once("close", () => this.#all.delete(connection));
    });
    server.once("listening", () => {
      const timer = setInterval(() => this.#check(), options.limits.checkEveryMs).unref();
      server.once("close", () => clearInterval(timer));
    });
  }

  endIdle(): void {
    for (const connection of this.#all) connection.endIdle();
  }

  #check(): void {
    const now = performance.now();
    for (const connection of this.#all) connection.check(now);
  }
}
