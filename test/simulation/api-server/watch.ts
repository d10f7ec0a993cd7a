import type { Stream } from "../../../src/cluster/client/client.ts";
import type { Json, JsonObject } from "../../../src/core/json.ts";
import type { Selects } from "./requests.ts";
import { type StoreEvent, textOf } from "./store.ts";

/** Lines that are sent one after another until the stream ends. */
export class LineQueue {
  readonly #lines: string[] = [];
  #waiting: (() => void) | undefined;
  #ended = false;

  push(type: string, object: JsonObject): void {
    if (this.#ended) return;
    this.#lines.push(`{"type":"${type}","object":${textOf(object)}}`);
    this.#wake();
  }

  /** Lines that were sent before are still read. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /** The reader is gone. */
  close(): void {
    this.#lines.length = 0;
    this.end();
  }

  get ended(): boolean {
    return this.#ended;
  }

  async *lines(): AsyncGenerator<string> {
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) yield line;
      else if (this.#ended) return;
      else
        await new Promise<void>((resolve) => {
          this.#waiting = resolve;
        });
    }
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.();
  }
}

/** The real server sends a bookmark about each minute, and shortly before it ends a watch. */
const BOOKMARK_MS = 60_000;
const BEFORE_END_MS = 2_000;

interface WatchOptions {
  readonly resource: string;
  readonly namespace: string;
  readonly selects: Selects | undefined;
  readonly convert: (object: JsonObject) => JsonObject;
  readonly bookmarks: boolean;
  readonly bookmark: () => JsonObject;
  readonly timeoutMs: number;
  readonly schedule: (delayMs: number, run: () => void) => unknown;
  readonly onEnd: () => void;
}

/** One watch: sends the events of a resource, as its selectors see them. */
export class Watch {
  readonly queue = new LineQueue();
  readonly #options: WatchOptions;
  /** Events up to here were sent. */
  #revision: number;
  /** The initial events end at this revision. */
  #initialEnd: number | undefined;

  constructor(options: WatchOptions, revision: number) {
    this.#options = options;
    this.#revision = revision;
    const { schedule, timeoutMs, bookmarks } = options;
    schedule(timeoutMs, () => this.end());
    if (bookmarks) {
      schedule(Math.max(0, timeoutMs - BEFORE_END_MS), () => this.#sendBookmark());
      this.#repeatBookmarks();
    }
  }

  sendInitial(objects: readonly JsonObject[], endAt: number | undefined): void {
    for (const object of objects) this.queue.push("ADDED", this.#options.convert(object));
    this.#initialEnd = endAt;
  }

  /** The server has seen the store up to a revision. */
  advance(events: readonly StoreEvent[], seen: number): void {
    for (const event of events) if (event.revision > this.#revision) this.#send(event);
    this.#revision = Math.max(this.#revision, seen);
    if (this.#initialEnd === undefined || seen < this.#initialEnd) return;
    this.#initialEnd = undefined;
    if (this.#options.bookmarks) this.#sendBookmark({ "k8s.io/initial-events-end": "true" });
  }

  fail(status: JsonObject): void {
    this.queue.push("ERROR", status);
    this.end();
  }

  end(): void {
    if (this.queue.ended) return;
    this.queue.end();
    this.#options.onEnd();
  }

  stream(headers: Readonly<Record<string, string>>): Stream {
    const close = (): void => {
      this.queue.close();
      this.#options.onEnd();
    };
    return { status: 200, headers, lines: this.queue.lines(), close };
  }

  #send({ type, resource, key, object, previous }: StoreEvent): void {
    const { selects = () => true, namespace, convert } = this.#options;
    if (resource !== this.#options.resource) return;
    if (namespace !== "" && !key.startsWith(`${namespace}/`)) return;
    const was = previous !== undefined && selects(previous);
    const is = type !== "DELETED" && selects(object);
    if (!was && !is) return;
    if (is) {
      this.queue.push(was ? "MODIFIED" : "ADDED", convert(object));
      return;
    }
    // An object that leaves the selection is sent as it was, with the new version.
    const metadata = { ...(previous?.["metadata"] as JsonObject), resourceVersion: versionOf(object) };
    this.queue.push("DELETED", convert({ ...previous, metadata }));
  }

  #sendBookmark(annotations?: JsonObject): void {
    // No bookmark before the initial events are complete.
    if (this.queue.ended || this.#initialEnd !== undefined) return;
    const metadata = {
      resourceVersion: String(this.#revision),
      ...(annotations === undefined ? {} : { annotations }),
    };
    this.queue.push("BOOKMARK", { ...this.#options.bookmark(), metadata });
  }

  #repeatBookmarks(): void {
    this.#options.schedule(BOOKMARK_MS, () => {
      if (this.queue.ended) return;
      this.#sendBookmark();
      this.#repeatBookmarks();
    });
  }
}

function versionOf(object: JsonObject): Json | undefined {
  return (object["metadata"] as JsonObject)["resourceVersion"];
}
