import type { Deadline } from "../../core/evaluate/source.ts";
import { retryAfterMs } from "./api-response.ts";
import type { ApiResponse, Client, RequestOptions } from "./client.ts";

/** For a 429 without Retry-After; the API server nearly always sends 1 s. */
const DEFAULT_RETRY_MS = 1_000;

/** How long to wait before repeating a request that was answered 429. Nothing was done, so even a write may be repeated. */
export function retryDelayMs(answer: ApiResponse): number | undefined {
  return answer.status === 429 ? (retryAfterMs(answer) ?? DEFAULT_RETRY_MS) : undefined;
}

/** One request, repeated after each 429 until the deadline. Returns the last response. */
export async function requestWithRetry(
  client: Client,
  method: string,
  path: string,
  options: Pick<RequestOptions, "body" | "limitBytes" | "accept">,
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

/** Resolves early, without an error, when the signal aborts. */
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

/** Short enough that a user does not notice the wait. */
const POLL_MS = 500;

/** Calls `isDone` until it returns true, the time is over or the signal aborts; returns whether it did. Calls it at least once. */
export async function poll(
  timeoutMs: number,
  isDone: () => Promise<boolean>,
  signal?: AbortSignal,
): Promise<boolean> {
  const until = performance.now() + timeoutMs;
  while (!(await isDone())) {
    if (signal?.aborted === true || performance.now() > until) return false;
    await pause(POLL_MS, signal);
  }
  return true;
}

/** Calls the listener once on abort; the returned function removes it. */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal?.aborted) queueMicrotask(listener);
  else signal?.addEventListener("abort", listener, { once: true });
  return () => signal?.removeEventListener("abort", listener);
}

/** As client-go's reflector: 0.8 s at first, doubled up to 30 s. */
export interface BackoffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
  /** Resets after this time without a failure. */
  readonly forgetMs: number;
}

export const BACKOFF: BackoffLimits = { firstMs: 800, longestMs: 30_000, forgetMs: 120_000 };

/** How long to wait after each failure. Callers pass the time. */
export class Backoff {
  readonly #limits: BackoffLimits;
  readonly #random: () => number;
  #failures = 0;
  #last = Number.NEGATIVE_INFINITY;

  constructor(random: () => number, limits: BackoffLimits = BACKOFF) {
    this.#random = random;
    this.#limits = limits;
  }

  /** True before the first failure, and again after `forgetMs` without one. */
  fresh(now: number): boolean {
    return this.#failures === 0 || now - this.#last >= this.#limits.forgetMs;
  }

  /** Records a failure and returns the delay: half of the step plus a random part, so that clients spread. */
  next(now: number): number {
    if (this.fresh(now)) this.#failures = 0;
    const { firstMs, longestMs } = this.#limits;
    // Bounded: 2 ** 1100 is Infinity.
    const step = Math.min(longestMs, firstMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    const wait = step / 2 + (step / 2) * this.#random();
    // The delay itself does not count as time without a failure.
    this.#last = now + wait;
    return wait;
  }
}
