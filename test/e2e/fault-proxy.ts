// Sits between usher and the API server, and breaks what breaks between them in real clusters: load balancers, NAT,
// vanishing nodes.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

interface Connection {
  readonly client: Socket;
  readonly server: Socket;
  /** Drops all data, in either direction, without an error. */
  silent: boolean;
  /** How many more bytes go to the client before the connection is cut. */
  remaining: number;
  /** Chunks on their way to the client, so that a delay does not change their order. */
  down: Promise<void>;
}

/** A TCP proxy whose connections can be broken in every way that connections break. New connections are intact. */
export class FaultProxy {
  readonly #target: URL;
  readonly #server: Server;
  readonly #connections = new Set<Connection>();
  #delayMs = 0;
  #refusing = false;

  constructor(target: string) {
    this.#target = new URL(target);
    this.#server = createServer((client) => this.#accept(client));
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  /** The address to connect to instead. */
  get address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `https://127.0.0.1:${port}`;
  }

  /** The number of open connections. */
  get size(): number {
    return this.#connections.size;
  }

  /** Closes every connection gracefully, as a load balancer does. */
  cut(): void {
    for (const { client, server } of this.#connections) {
      client.end();
      server.destroy();
    }
  }

  /** Sends every client a TCP reset. */
  reset(): void {
    for (const { client, server } of this.#connections) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  /** Passes some more bytes to each client and then closes its connection, in the middle of a message. */
  truncateAfter(bytes: number): void {
    for (const connection of this.#connections) connection.remaining = bytes;
  }

  /** Connections stay open and no data arrives, as when a machine loses its power. */
  silence(): void {
    for (const connection of this.#connections) connection.silent = true;
  }

  /** Delays data to the client, for old and new connections. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** Resets new connections until called again. */
  refuse(refusing: boolean): void {
    this.#refusing = refusing;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const { client, server } of this.#connections) {
      client.destroy();
      server.destroy();
    }
    await once(this.#server, "close");
  }

  #accept(client: Socket): void {
    client.on("error", () => undefined);
    if (this.#refusing) {
      client.resetAndDestroy();
      return;
    }
    const server = connect(Number(this.#target.port), this.#target.hostname);
    server.on("error", () => client.destroy());
    const connection: Connection = {
      client,
      server,
      silent: false,
      remaining: Number.POSITIVE_INFINITY,
      down: Promise.resolve(),
    };
    this.#connections.add(connection);
    client.on("data", (chunk) => {
      if (!connection.silent) server.write(chunk);
    });
    server.on("data", (chunk) => {
      connection.down = connection.down.then(() => this.#down(connection, chunk));
    });
    client.once("close", () => {
      this.#connections.delete(connection);
      server.destroy();
    });
    server.once("close", () => {
      if (!connection.silent) connection.down.then(() => client.end());
    });
  }

  async #down(connection: Connection, chunk: Buffer): Promise<void> {
    if (this.#delayMs > 0) await sleep(this.#delayMs);
    const { client, server } = connection;
    if (connection.silent || client.destroyed) return;
    const part = chunk.subarray(0, Math.min(chunk.length, connection.remaining));
    connection.remaining -= part.length;
    client.write(part);
    if (connection.remaining > 0) return;
    connection.silent = true;
    client.end();
    server.destroy();
  }
}
