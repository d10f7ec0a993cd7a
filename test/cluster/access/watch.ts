// List and watch, for the harness only: it lists again after any error. Usher's own reflector is far more careful.
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { isObject, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import type { Client } from "./client.ts";

const RETRY_MS = 300;

export type Objects = ReadonlyMap<string, JsonObject>;

function keyOf(object: Json): string {
  return stringAt(object, "metadata", "uid") ?? "";
}

async function* lines(stream: IncomingMessage): AsyncGenerator<string> {
  let rest = "";
  stream.setEncoding("utf8");
  for await (const chunk of stream) {
    const parts = (rest + String(chunk)).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}

export class Watch {
  readonly #client: Client;
  readonly #path: string;
  readonly #query: string;
  readonly #changed: (objects: Objects) => void;
  readonly #objects = new Map<string, JsonObject>();
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  /** Calls `changed` with all objects after the first list and after every change. */
  constructor(client: Client, path: string, query: string, changed: (objects: Objects) => void) {
    this.#client = client;
    this.#path = path;
    this.#query = query;
    this.#changed = changed;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.#follow(await this.#list());
      } catch {
        // The API server may be restarting, or the connection was cut: list again.
      }
      await sleep(RETRY_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    }
  }

  async #list(): Promise<string> {
    const list = await this.#client.call("GET", `${this.#path}?${this.#query}`);
    this.#objects.clear();
    for (const item of listAt(list, "items")) if (isObject(item)) this.#objects.set(keyOf(item), item);
    this.#changed(this.#objects);
    return stringAt(list, "metadata", "resourceVersion") ?? "";
  }

  async #follow(resourceVersion: string): Promise<void> {
    const path = `${this.#path}?${this.#query}&watch=true&resourceVersion=${resourceVersion}`;
    const signal = this.#stop.signal;
    const stream = await this.#client.open("GET", path, undefined, undefined, { signal });
    if (stream.statusCode !== 200) {
      stream.resume();
      return;
    }
    for await (const line of lines(stream)) {
      const event = JSON.parse(line) as { readonly type: string; readonly object: JsonObject };
      if (event.type === "ERROR") return;
      if (event.type === "DELETED") this.#objects.delete(keyOf(event.object));
      else this.#objects.set(keyOf(event.object), event.object);
      this.#changed(this.#objects);
    }
  }
}
