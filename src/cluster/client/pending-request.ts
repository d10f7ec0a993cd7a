import type { IncomingMessage, RequestOptions as NodeOptions } from "node:http";
import type { request } from "node:https";
import { ConnectionError, type RequestOptions } from "./client.ts";

/** A request's options with its deadline. */
export interface TimedOptions extends RequestOptions {
  readonly timeoutMs: number;
  /** By `performance.now()`; the same for all attempts. */
  readonly deadline: number;
  /** How long a kept connection may be silent: one that was cut silently looks like a slow server. @default the deadline */
  readonly silentMs?: number | undefined;
}

export function timeoutError({ timeoutMs }: TimedOptions): ConnectionError {
  return new ConnectionError(`no complete response within ${timeoutMs} ms`);
}

/** One request in flight, with its timeout and its caller's signal. */
export class PendingRequest {
  readonly response: Promise<IncomingMessage>;
  readonly done: () => void;
  readonly #isStale: () => boolean;

  constructor(send: typeof request, base: NodeOptions, options: TimedOptions) {
    const { body, signal, deadline, silentMs } = options;
    const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const length = payload === undefined ? {} : { "content-length": String(payload.length) };
    const sent = send({ ...base, headers: { ...(base.headers as Record<string, string>), ...length } });
    let ended = false;
    const end = (why: ConnectionError): void => {
      ended = true;
      sent.destroy(why);
    };
    const cancel = (): void => end(new ConnectionError("canceled by the caller"));
    const timer = setTimeout(() => end(timeoutError(options)), deadline - performance.now());
    const onSilence = (): unknown => sent.reusedSocket && sent.destroy(new ConnectionError("no response"));
    const silenceTimer = silentMs === undefined ? undefined : setTimeout(onSilence, silentMs);
    this.done = () => {
      clearTimeout(timer);
      clearTimeout(silenceTimer);
      signal?.removeEventListener("abort", cancel);
    };
    // Only a reused connection can have been closed while idle, and only if this side did not end it for good.
    this.#isStale = () => sent.reusedSocket && !ended;
    this.response = new Promise((resolve, reject) => {
      sent.once("response", (response: IncomingMessage) => {
        clearTimeout(silenceTimer);
        resolve(response);
      });
      // Stays attached: the response reports errors after it, and an error without a listener would end the process.
      sent.on("error", reject);
    });
    if (signal?.aborted) cancel();
    else signal?.addEventListener("abort", cancel, { once: true });
    sent.end(payload);
  }

  get stale(): boolean {
    return this.#isStale();
  }
}
