import { describeNeed, type Fact, type Need } from "../../core/decision/need.ts";
import type { Deadline } from "../../core/evaluate/source.ts";
import type { Json } from "../../core/json.ts";
import { errorFact, failedFact, unservedFact } from "./api-fact.ts";
import { withoutManagedFields } from "./api-response.ts";
import type { Client } from "./client.ts";
import type { ResourceResolver } from "./discovery.ts";
import type { ListMemory } from "./list-memory.ts";
import { ListError, listPages } from "./list-pages.ts";
import { requestWithRetry } from "./retry.ts";

/** Parsing 100 pods blocks the event loop for 14 ms, parsing 5,000 at once for half a second. */
const PAGE = 100;

type ListNeed = Extract<Need, { readonly list: unknown }>;

/**
 * As much of a list as its limit, its time and the memory for lists allow. If any of them runs out, the objects read so
 * far are an incomplete list; it is a failure only if nothing was read.
 */
export async function boundedList(
  client: Client,
  resources: ResourceResolver,
  need: ListNeed,
  deadline: Deadline,
  memory: ListMemory,
): Promise<Fact> {
  const what = describeNeed(need);
  const own = partOf(deadline, need);
  const held = memory.hold();
  const found: Json[] = [];
  let token = need.list.continue;
  let remaining: number | undefined;
  let leftOut = false;
  const partial = (): Fact => ({
    found: found.slice(0, need.limit),
    complete: false,
    ...(token === undefined ? {} : { next: token }),
    ...(remaining === undefined ? {} : { total: found.length + remaining }),
  });
  const cut = (failure: Fact): Fact => (found.length > 0 ? partial() : failure);
  const { resource, namespace, managers, ...selection } = need.list;
  const endsForMemory = (): boolean => {
    if (memory.full) memory.endedEarly(resource);
    return memory.full;
  };
  try {
    const path = await resources.pathOf(resource, namespace);
    if (own.remaining() <= 0) return cut({ failed: `${what}: its share of the time ran out` });
    const pages = listPages(client, path, {
      ...selection,
      limit: () => Math.max(1, Math.min(PAGE, need.limit - found.length)),
      // A list keeps its page until it has the next.
      keep: managers === true ? undefined : withoutManagedFields,
      get: async (page, options) => {
        const answer = await requestWithRetry(client, "GET", page, options, own);
        // Concurrent lists were all sent while memory was free. The body is not parsed yet.
        if (endsForMemory()) throw new Error("other lists take the memory, try again");
        return answer;
      },
    });
    for await (const page of pages) {
      for (const item of page.items) {
        held.add(item);
        found.push(item);
      }
      if (page.skipped !== undefined) {
        memory.leftOut(resource, page.skipped);
        leftOut = true;
      }
      token = page.next;
      // The API server reports the number of remaining objects only for lists without selectors, and only as an
      // estimate.
      remaining = token === undefined && found.length > need.limit ? 0 : page.remaining;
      if (found.length > need.limit || (token !== undefined && found.length === need.limit)) return partial();
      if (token !== undefined && own.remaining() <= 0) return partial();
      if (token !== undefined && endsForMemory()) return partial();
    }
    return leftOut ? partial() : { found, complete: true, total: found.length };
  } catch (error) {
    if (!(error instanceof ListError)) return cut(errorFact(what, error));
    const { response } = error;
    if (response.status === 200) return cut(failedFact(`${what}: not a list`, response));
    // Also if the token expired: the rest of that state of the list is gone.
    return cut(
      await unservedFact(what, resources, resource, response, own.signal).catch((thrown: unknown) =>
        errorFact(what, thrown),
      ),
    );
  } finally {
    held.release();
    own.release();
  }
}

/** A deadline within another one: the list's share of it, and at most its own timeout. */
function partOf(
  deadline: Deadline,
  { share, timeoutMs = Number.POSITIVE_INFINITY }: ListNeed,
): Deadline & { readonly release: () => void } {
  const ms = Math.max(0, Math.min(timeoutMs, deadline.remaining() * Math.min(1, Math.max(0, share))));
  const until = performance.now() + ms;
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), ms);
  const signal = AbortSignal.any([deadline.signal, over.signal]);
  return {
    remaining: () => (signal.aborted ? 0 : Math.min(until - performance.now(), deadline.remaining())),
    signal,
    release: () => clearTimeout(timer),
  };
}
