import type { IncomingMessage, RequestOptions as NodeOptions } from "node:http";
import type { request } from "node:https";
import { ConnectionError, type RequestOptions } from "./client.ts";

/** What a request is sent with. */
export type Timed = RequestOptions & { readonly timeoutMs: number };

/** One request under way, with its time limit and its caller's signal. */
export class Sending {
  readonly response: Promise<IncomingMessage>;
  readonly done: () => void;
  readonly #isStale: () => boolean;

  constructor(send: typeof request, base: NodeOptions, options: Timed) {
    const { body, signal, timeoutMs } = options;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const length = payload === undefined ? {} : { "content-length": String(payload.length) };
    const sent = send({ ...base, headers: { ...(base.headers as Record<string, string>), ...length } });
    const give = (why: string) => (): void => {
      sent.destroy(new ConnectionError(why));
    };
    const gone = give("the caller gave up");
    const timer = setTimeout(give(`no whole answer within ${timeoutMs} ms`), timeoutMs);
    this.done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", gone);
    };
    // Only a connection that had been used before can have died of old age.
    this.#isStale = () => sent.reusedSocket && !signal?.aborted;
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
