import type { Deadline } from "../../core/view/source.ts";
import { retryAfterMs } from "./api-response.ts";
import type { ApiResponse, Client, RequestOptions } from "./client.ts";

/** Where the API server refuses for now and does not say for how long: what it says itself nearly always. */
export const DEFAULT_RETRY_MS = 1_000;

/** "Too many requests": nothing was done, so even a write may be sent again. */
export function retryDelayMs(answer: ApiResponse): number | undefined {
  return answer.status === 429 ? (retryAfterMs(answer) ?? DEFAULT_RETRY_MS) : undefined;
}

/** One request, sent again as the API server asks for it, as long as there is time. The last answer is given in any case. */
export async function requestWithRetry(
  client: Client,
  method: string,
  path: string,
  options: Pick<RequestOptions, "body">,
  deadline: Deadline,
): Promise<ApiResponse> {
  for (;;) {
    const answer = await client.request(method, path, {
      ...options,
      signal: deadline.signal,
      timeoutMs: Math.max(1, deadline.remaining()),
    });
    const wait = retryDelayMs(answer);
    if (wait === undefined || wait >= deadline.remaining()) return answer;
    await pause(wait, deadline.signal);
    if (deadline.signal.aborted) return answer;
  }
}

/** Ends early, and without an error, when the signal comes. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.resolve();
  const timer = setTimeout(resolve, ms);
  const off = onAbort(signal, resolve);
  return promise.finally(() => {
    clearTimeout(timer);
    off();
  });
}

/** Calls back once when the signal comes; what is returned lets go of it. */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal?.aborted) queueMicrotask(listener);
  else signal?.addEventListener("abort", listener, { once: true });
  return () => signal?.removeEventListener("abort", listener);
}
