// Between usher and the API server, to break what is between them in real clusters: load balancers, NAT, nodes that vanish.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

interface Connection {
  readonly client: Socket;
  readonly server: Socket;
  /** Nothing goes through any more, in either direction, and nobody is told. */
  silent: boolean;
  /** How many bytes still go down to the client before it is cut. */
  remaining: number;
  /** Chunks on their way down, so that a delay does not change their order. */
  down: Promise<void>;
}

/** A TCP proxy whose connections can be broken in every way that connections break. New ones are whole again. */
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

  /** Where to connect instead. */
  get address(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `https://127.0.0.1:${port}`;
  }

  /** How many connections go through. */
  get size(): number {
    return this.#connections.size;
  }

  /** Ends every connection in an orderly way, as a load balancer does. */
  cut(): void {
    for (const { client, server } of this.#connections) {
      client.end();
      server.destroy();
    }
  }

  /** Every client gets a TCP reset. */
  reset(): void {
    for (const { client, server } of this.#connections) {
      client.resetAndDestroy();
      server.resetAndDestroy();
    }
  }

  /** Lets some more bytes through to each client and then ends its connection, in the middle of whatever it was. */
  truncateAfter(bytes: number): void {
    for (const connection of this.#connections) connection.remaining = bytes;
  }

  /** Connections stay open and nothing comes any more, as when a machine loses its power. */
  silence(): void {
    for (const connection of this.#connections) connection.silent = true;
  }

  /** What comes down comes this much later, for old and new connections. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** New connections are reset, until it is told otherwise. */
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
