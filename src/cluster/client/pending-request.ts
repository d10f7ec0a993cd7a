import type { IncomingMessage, RequestOptions as NodeOptions } from "node:http";
import type { request } from "node:https";
import { ConnectionError, type RequestOptions } from "./client.ts";

/** What a request is sent with. */
export interface TimedOptions extends RequestOptions {
  readonly timeoutMs: number;
  /** When that is over, by `performance.now()`: the same for all the times that it is sent. */
  readonly until: number;
}

export function timeoutError({ timeoutMs }: TimedOptions): ConnectionError {
  return new ConnectionError(`no whole answer within ${timeoutMs} ms`);
}

/** One request under way, with its time limit and its caller's signal. */
export class PendingRequest {
  readonly response: Promise<IncomingMessage>;
  readonly done: () => void;
  readonly #isStale: () => boolean;

  constructor(send: typeof request, base: NodeOptions, options: TimedOptions) {
    const { body, signal, until } = options;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const length = payload === undefined ? {} : { "content-length": String(payload.length) };
    const sent = send({ ...base, headers: { ...(base.headers as Record<string, string>), ...length } });
    let ended = false;
    const end = (why: ConnectionError): void => {
      ended = true;
      sent.destroy(why);
    };
    const gone = (): void => end(new ConnectionError("the caller gave up"));
    const timer = setTimeout(() => end(timeoutError(options)), until - performance.now());
    this.done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", gone);
    };
    // Only a connection that had been used before can have died of old age, and only where it was not we who ended it.
    this.#isStale = () => sent.reusedSocket && !ended;
    this.response = new Promise((resolve, reject) => {
      sent.once("response", resolve);
      // Stays: an error after the response is told by the response, and without a listener it would end the process.
      sent.on("error", reject);
    });
    if (signal?.aborted) gone();
    else signal?.addEventListener("abort", gone, { once: true });
    sent.end(payload);
  }

  get stale(): boolean {
    return this.#isStale();
  }
}
