import { describeNeed, type Fact, type Need } from "../../core/evaluate/need.ts";
import { isObject, type Json, listAt, stringAt } from "../../core/json.ts";
import type { Deadline } from "../../core/view/source.ts";
import { errorOf, refusalOf, withoutManagers } from "./api-error.ts";
import type { Client } from "./client.ts";
import type { ResourceResolver } from "./discovery.ts";
import { requestWithRetry } from "./retry.ts";

/** Parsing 100 pods holds up the loop for 14 ms, 5,000 at once for half a second. */
const PAGE = 100;

type ListNeed = Extract<Need, { readonly list: unknown }>;

/**
 * As much of a list as its limit and its share of the time allow. What was read before either ran out is given as incomplete; only
 * where nothing was read at all is it a failure.
 */
export async function boundedList(
  client: Client,
  resources: ResourceResolver,
  need: ListNeed,
  deadline: Deadline,
): Promise<Fact> {
  const what = describeNeed(need);
  const own = shareOf(deadline, need.share);
  const found: Json[] = [];
  let token = need.list.continue;
  const cut = (why: string): Fact =>
    found.length > 0 ? { found, complete: false, ...nextOf(token) } : { failed: why };
  try {
    const path = await resources.pathOf(need.list.resource, need.list.namespace);
    for (;;) {
      if (own.remaining() <= 0) return cut(`${what}: its share of the time ran out`);
      const page = Math.max(1, Math.min(PAGE, need.limit - found.length));
      const { labelSelector, fieldSelector, managers } = need.list;
      const query = queryOf({ labelSelector, fieldSelector, limit: String(page), continue: token });
      const answer = await requestWithRetry(client, "GET", `${path}?${query}`, {}, own);
      // Also where the token is too old: what began as one state of the list can't be read to its end.
      if (answer.status !== 200) return cut(refusalOf(what, answer));
      for (const item of itemsOf(answer.body)) found.push(managers === true ? item : withoutManagers(item));
      token = stringAt(answer.body, "metadata", "continue") || undefined;
      if (token === undefined && found.length <= need.limit) return { found, complete: true };
      if (found.length >= need.limit)
        return { found: found.slice(0, need.limit), complete: false, ...nextOf(token) };
    }
  } catch (error) {
    return cut(errorOf(what, error));
  } finally {
    own.release();
  }
}

/** A deadline within another one. */
function shareOf(deadline: Deadline, share: number): Deadline & { readonly release: () => void } {
  const ms = Math.max(0, deadline.remaining() * Math.min(1, Math.max(0, share)));
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

function nextOf(token: string | undefined): { readonly next?: string } {
  return token === undefined ? {} : { next: token };
}
