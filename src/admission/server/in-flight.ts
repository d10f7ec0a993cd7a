import type { Socket } from "node:net";

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
