import { setTimeout as sleep } from "node:timers/promises";

const LOOK_AGAIN_MS = 100;

/** Only bounds the wait, not the behaviour under test: a busy machine may be slow. */
const DEFAULT_TIMEOUT_MS = 60_000;

/**
 * Polls until the result is neither `undefined` nor `false`; after `timeoutMs` throws with the awaited condition and
 * the last error.
 */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  timeoutMs = DEFAULT_TIMEOUT_MS,
): Promise<T> {
  const until = Date.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > until) {
      throw new Error(`${what}: not within ${timeoutMs / 1000} s`, last === undefined ? {} : { cause: last });
    }
    await sleep(LOOK_AGAIN_MS);
  }
}
