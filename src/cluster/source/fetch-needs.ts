import { DEADLINE_EXCEEDED, type Fact, type Need, needKey } from "../../core/decision/need.ts";
import type { Deadline } from "../../core/evaluate/source.ts";
import { isObject } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { byText } from "../../core/order.ts";
import { errorFact, failedFact } from "../client/api-fact.ts";
import { boundedList } from "../client/bounded-list.ts";
import type { Client } from "../client/client.ts";
import type { ResourceResolver } from "../client/discovery.ts";
import { ListMemory } from "../client/list-memory.ts";
import { type ObjectTarget, readObject } from "../client/object-access.ts";
import { onAbort, requestWithRetry } from "../client/retry.ts";
import { batcherKey, type CommitBatchers } from "../commits/commit-batchers.ts";

export type FetchNeeds = (needs: readonly Need[], deadline: Deadline) => Promise<readonly Fact[]>;

/**
 * Fetches from the API server what the view does not hold, all needs of a call in parallel. With `batchers`, an object
 * that other requests are changing is returned in its newest, unwritten state, in turn; without, facts are always the
 * stored state.
 */
export function createNeeds(
  client: Client,
  resources: ResourceResolver,
  batchers?: CommitBatchers,
  memory: ListMemory = new ListMemory(SILENT),
): FetchNeeds {
  const reads = new SharedReads();
  const ask = async (need: Need, deadline: Deadline): Promise<Fact> => {
    if ("get" in need && need.written === true) await batchers?.waitForWrites(need.get);
    return reads.read(needKey(need), deadline, (own) => fetchNeed(client, resources, memory, need, own));
  };

  return async (needs, deadline) => {
    batchers?.release(deadline);
    const facts = new Map<Need, Fact>();
    const inTurn: { readonly need: Need; readonly target: ObjectTarget }[] = [];
    const fetched: Promise<unknown>[] = [];
    for (const need of needs) {
      const target = changing(need, batchers);
      if (target !== undefined) inTurn.push({ need, target });
      else fetched.push(ask(need, deadline).then((fact) => facts.set(need, fact)));
    }
    await Promise.all(fetched);
    // A turn delays other requests, so it comes last; and in one order for all requests, which rules out deadlocks.
    inTurn.sort(byText(({ target }) => batcherKey(target)));
    for (const { need, target } of inTurn) {
      facts.set(need, await (batchers?.fetch(target, deadline) ?? ask(need, deadline)));
    }
    return needs.map((need) => facts.get(need) ?? { failed: "not fetched" });
  };
}

function changing(need: Need, batchers: CommitBatchers | undefined): ObjectTarget | undefined {
  if (!("get" in need) || need.live !== true || need.written === true) return undefined;
  return batchers?.isOpen(need.get) ? need.get : undefined;
}

function fetchNeed(
  client: Client,
  resources: ResourceResolver,
  memory: ListMemory,
  need: Need,
  deadline: Deadline,
): Promise<Fact> {
  if ("get" in need) return readObject(client, resources, need.get, deadline, need.anyVersion);
  if ("list" in need) return boundedList(client, resources, need, deadline, memory);
  return accessReview(client, need, deadline);
}

const REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

/** The fact is the status of the review: `allowed`, and perhaps `denied`, `reason`, `evaluationError`. */
async function accessReview(
  client: Client,
  need: Extract<Need, { readonly access: unknown }>,
  deadline: Deadline,
): Promise<Fact> {
  const what = "access review";
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SubjectAccessReview",
    metadata: {},
    spec: need.access,
  };
  try {
    const reply = await requestWithRetry(client, "POST", REVIEWS, { body }, deadline);
    const status = isObject(reply.body) ? reply.body["status"] : undefined;
    if (reply.status >= 300 || !isObject(status)) return failedFact(what, reply);
    return { found: status, complete: true };
  } catch (error) {
    return errorFact(what, error);
  }
}

/** One read for several requests. */
interface Group {
  readonly deadlines: Set<Deadline>;
  readonly abort: AbortController;
  readonly fact: Promise<Fact>;
  readonly send: () => void;
}

/**
 * Coalesces equal live reads. A request never joins a read in flight, which may return a state from before the request.
 * Requests that arrive in the meantime share the next read, so at most two are in flight.
 */
export class SharedReads {
  readonly #inFlight = new Set<string>();
  readonly #next = new Map<string, Group>();

  async read(key: string, deadline: Deadline, fetch: (deadline: Deadline) => Promise<Fact>): Promise<Fact> {
    if (deadline.signal.aborted) return DEADLINE_EXCEEDED;
    const group = this.#next.get(key) ?? this.#group(key, fetch);
    group.deadlines.add(deadline);
    const { promise: aborted, resolve } = Promise.withResolvers<Fact>();
    const off = onAbort(deadline.signal, () => {
      resolve(DEADLINE_EXCEEDED);
      group.deadlines.delete(deadline);
      if (group.deadlines.size > 0) return;
      group.abort.abort();
      // A read that was aborted before it was sent must not be joined.
      if (this.#next.get(key) === group) this.#next.delete(key);
    });
    if (!this.#inFlight.has(key)) group.send();
    return Promise.race([group.fact, aborted]).finally(off);
  }

  #group(key: string, fetch: (deadline: Deadline) => Promise<Fact>): Group {
    const deadlines = new Set<Deadline>();
    const abort = new AbortController();
    // The latest deadline.
    const remaining = () => Math.max(0, ...[...deadlines].map((one) => one.remaining()));
    const { promise: fact, resolve } = Promise.withResolvers<Fact>();
    const send = () => {
      this.#next.delete(key);
      this.#inFlight.add(key);
      const response = abort.signal.aborted
        ? Promise.resolve(DEADLINE_EXCEEDED)
        : fetch({ remaining, signal: abort.signal });
      void response.then((found) => {
        this.#inFlight.delete(key);
        resolve(found);
        this.#next.get(key)?.send();
      });
    };
    const group = { deadlines, abort, fact, send };
    this.#next.set(key, group);
    return group;
  }
}
