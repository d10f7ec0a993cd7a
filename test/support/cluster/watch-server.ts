import { setTimeout as sleep } from "node:timers/promises";
import {
  type ApiResponse,
  type Client,
  ConnectionError,
  type RequestOptions,
  type Stream,
} from "../../../src/cluster/client/client.ts";
import type { Json, JsonObject } from "../../../src/core/json.ts";
import { History } from "./history.ts";

/** An open stream. */
interface Open {
  readonly path: string;
  readonly lines: string[];
  /** A broken stream ends with an error. */
  ended: "no" | "closed" | "broken";
}

/**
 * An API server in memory that serves some cluster-scoped resources of one group, `things.test`. For tests of the
 * layers above the connection; tests on a real control plane verify the API server's behaviour.
 */
export class TestWatchServer implements Client {
  readonly server = "https://test";
  readonly asked: string[] = [];
  readonly #histories = new Map<string, History>();
  readonly #open = new Set<Open>();
  streaming = true;
  /** Whether streams withhold events. */
  silent = false;

  /** The history of a resource, which is served from then on. */
  history(resource: string): History {
    const history = this.#histories.get(resource) ?? new History();
    this.#histories.set(resource, history);
    return history;
  }

  uninstall(resource: string): void {
    this.#histories.delete(resource);
  }

  get streams(): number {
    return this.#open.size;
  }

  /** Breaks every stream, or ends it after one more line. */
  break(line?: string): void {
    for (const open of this.#open) {
      if (line !== undefined) open.lines.push(line);
      open.ended = line === undefined ? "broken" : "closed";
    }
  }

  request = async (_method: string, path: string, _options?: RequestOptions): Promise<ApiResponse> => {
    const { pathname, searchParams } = this.#ask(path);
    const resource = pathname.split("/")[4];
    if (resource === undefined) {
      const resources = [...this.#histories.keys()].map((name) => ({ name, namespaced: false }));
      return answer(200, { resources });
    }
    const history = this.#histories.get(resource);
    if (history === undefined) return answer(404, undefined);
    const page = history.page(Number(searchParams.get("limit")), searchParams.get("continue") ?? undefined);
    if (page === undefined) return answer(410, { message: "too old" });
    const metadata = { resourceVersion: page.version, continue: page.next ?? "" };
    return answer(200, { apiVersion: "things.test/v1", kind: "ThingList", metadata, items: page.items });
  };

  stream = async (path: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<Stream> => {
    const { pathname, searchParams } = this.#ask(path);
    const history = this.#histories.get(pathname.split("/")[4] ?? "");
    if (history === undefined) return refused(404, "not served");
    const lists = searchParams.get("sendInitialEvents") === "true";
    if (lists && !this.streaming) return refused(422, "sendInitialEvents is forbidden");
    const from = lists ? history.version : Number(searchParams.get("resourceVersion"));
    if (history.after(from) === undefined) return refused(410, "too old");
    const open: Open = { path, lines: lists ? listLines(history) : [], ended: "no" };
    const close = (): void => {
      open.ended = "closed";
    };
    signal?.addEventListener("abort", close, { once: true });
    this.#open.add(open);
    return { status: 200, headers: {}, lines: this.#lines(open, history, from), close };
  };

  close = (): void => this.break();

  async *#lines(open: Open, history: History, from: number): AsyncGenerator<string> {
    let sent = from;
    try {
      for (;;) {
        yield* open.lines.splice(0);
        if (open.ended === "broken") throw new ConnectionError("the test broke it");
        if (open.ended === "closed") return;
        for (const { version, name, object } of this.silent ? [] : (history.after(sent) ?? [])) {
          sent = version;
          const gone = { metadata: { name, resourceVersion: String(version) } };
          open.lines.push(event(object === undefined ? "DELETED" : "MODIFIED", object ?? gone));
        }
        if (open.lines.length === 0) await sleep(1);
      }
    } finally {
      this.#open.delete(open);
    }
  }

  #ask(path: string): URL {
    this.asked.push(path);
    return new URL(path, this.server);
  }
}

function listLines(history: History): string[] {
  const annotations = { "k8s.io/initial-events-end": "true" };
  const end = { metadata: { resourceVersion: String(history.version), annotations } };
  const objects = [...history.at(history.version).values()];
  return [...objects.map((object) => event("ADDED", object)), event("BOOKMARK", end)];
}

export function event(type: string, object: JsonObject): string {
  const whole = type === "ERROR" ? object : { apiVersion: "things.test/v1", kind: "Thing", ...object };
  return JSON.stringify({ type, object: whole });
}

function answer(status: number, body: Json | undefined): ApiResponse {
  return { status, headers: {}, body, text: JSON.stringify(body) ?? "404 page not found" };
}

function refused(status: number, message: string): Stream {
  const lines = (async function* () {
    yield JSON.stringify({ kind: "Status", code: status, message });
  })();
  return { status, headers: {}, lines, close: () => undefined };
}
