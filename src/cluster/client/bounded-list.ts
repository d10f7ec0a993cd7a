import { describeNeed, type Fact, type Need } from "../../core/evaluate/need.ts";
import { at, isObject, type Json, listAt, stringAt } from "../../core/json.ts";
import type { Deadline } from "../../core/view/source.ts";
import { withoutManagedFields } from "./api-error.ts";
import { errorFact, failedFact, unservedFact } from "./api-fact.ts";
import type { Client } from "./client.ts";
import type { ResourceResolver } from "./discovery.ts";
import { hasList } from "./has-list.ts";
import { requestWithRetry } from "./retry.ts";

/** Parsing 100 pods holds up the loop for 14 ms, 5,000 at once for half a second. */
const PAGE = 100;

type ListNeed = Extract<Need, { readonly list: unknown }>;

/**
 * As much of a list as its limit and its time allow. What was read before either ran out is incomplete; only where nothing was read
 * at all is it a failure.
 */
export async function boundedList(
  client: Client,
  resources: ResourceResolver,
  need: ListNeed,
  deadline: Deadline,
): Promise<Fact> {
  const what = describeNeed(need);
  const own = partOf(deadline, need);
  const found: Json[] = [];
  let token = need.list.continue;
  let remaining: number | undefined;
  const partial = (): Fact => ({
    found: found.slice(0, need.limit),
    complete: false,
    ...(token === undefined ? {} : { next: token }),
    ...(remaining === undefined ? {} : { total: found.length + remaining }),
  });
  const cut = (failure: Fact): Fact => (found.length > 0 ? partial() : failure);
  try {
    const { resource, namespace, labelSelector, fieldSelector, managers } = need.list;
    const path = await resources.pathOf(resource, namespace);
    for (;;) {
      if (own.remaining() <= 0) return cut({ failed: `${what}: its share of the time ran out` });
      const page = Math.max(1, Math.min(PAGE, need.limit - found.length));
      const query = queryOf({ labelSelector, fieldSelector, limit: String(page), continue: token });
      const answer = await requestWithRetry(client, "GET", `${path}?${query}`, {}, own);
      if (answer.status !== 200) {
        // Also where the token expired: the rest of that state of the list is gone.
        return cut(await unservedFact(what, resources, resource, answer, own.signal));
      }
      if (!hasList(answer.body, "items")) return cut(failedFact(`${what}: not a list`, answer));
      for (const item of itemsOf(answer.body))
        found.push(managers === true ? item : withoutManagedFields(item));
      token = stringAt(answer.body, "metadata", "continue") || undefined;
      remaining = remainingOf(answer.body, token, found.length - need.limit);
      if (token === undefined && found.length <= need.limit)
        return { found, complete: true, total: found.length };
      if (found.length >= need.limit) return partial();
    }
  } catch (error) {
    return cut(errorFact(what, error));
  } finally {
    own.release();
  }
}

/** How many items follow a page. The API server says so only of lists without selectors, and even then it is an estimate. */
function remainingOf(list: Json | undefined, token: string | undefined, excess: number): number | undefined {
  if (token === undefined) return excess > 0 ? 0 : undefined;
  const count = at(list, "metadata", "remainingItemCount");
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}

/** A deadline within another one: the list's share of it, and at most its timeout. */
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

function queryOf(parts: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) if (value !== undefined) query.set(name, value);
  return query.toString();
}

/** In a list the items do not say what they are, only the list does. */
function itemsOf(list: Json | undefined): Json[] {
  const apiVersion = stringAt(list, "apiVersion");
  const kind = stringAt(list, "kind")?.replace(/List$/, "");
  const type = apiVersion === undefined || kind === undefined ? {} : { apiVersion, kind };
  return listAt(list, "items").map((item) => (isObject(item) ? { ...type, ...item } : item));
}
