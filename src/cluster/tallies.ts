import type { CountedTally } from "../core/effects.ts";
import type { PolicyRef } from "../core/finding.ts";
import { equal, type Json, type JsonObject, listAt, stringAt } from "../core/json.ts";
import type { Log } from "../core/log.ts";
import type { PlanContext } from "../core/plan.ts";
import type { Client } from "./client.ts";
import { pathSegment } from "./path-segment.ts";
import { FIELD_MANAGER } from "./planned-writes.ts";
import { errorOf, refusalOf } from "./refusal.ts";
import { decodeTallies, encodeTallies, mergeTallies, type TallyBook, tallyKey } from "./tally-book.ts";

/** What planners ask: all replicas together, since each of them started. So a count falls when a replica goes. */
export type TallySource = NonNullable<PlanContext["tallies"]>;

export interface TallyOptions {
  readonly client: Client;
  /** Usher's own. */
  readonly namespace: string;
  /** This replica's name: its pod's. */
  readonly replica: string;
  readonly book: TallyBook;
  readonly log: Log;
  /** Milliseconds, any origin. */
  readonly clock?: () => number;
}

/**
 * Whoever applies a policy and then a pod looks at the status next, and must not wait for a minute. Cheap still: a write a replica,
 * where there is something new, and a small list by the leader.
 */
export const TALLY_EVERY_MS = 10_000;

/** Even where nothing has changed it is written so often, as a sign of life. */
const SIGN_OF_LIFE_MS = 600_000;

/** What has not changed for three signs of life has no owner any more. */
const ORPHANED_MS = 3 * SIGN_OF_LIFE_MS;

/** A ConfigMap holds 1 MiB; its metadata and what JSON escapes need some of it. About 5,000 policies. */
const MOST_BYTES = 700_000;

const LABEL = "usher.dev/tallies";
const ENTRY = "tallies";

/**
 * Publishes the tallies of this replica in a ConfigMap of its own, `usher-tallies-<replica>`, so that no two replicas ever write the
 * same object. With an owner, the pod, Kubernetes deletes it together with that; else `stop` does, or at last the leader.
 */
export class TallyPublisher {
  readonly #options: TallyOptions & { readonly owner?: JsonObject };
  readonly #clock: () => number;
  #published = { changes: 0, at: Number.NEGATIVE_INFINITY };
  /** Whether it was ever tried: what was not answered may have been done. */
  #asked = false;
  #publishing: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `owner` is an ownerReference: apiVersion, kind, name, uid. */
  constructor(options: TallyOptions & { readonly owner?: JsonObject }) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.publish(), TALLY_EVERY_MS).unref();
  }

  /** The counts go with the replica. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    // What is under way would else be written after it was deleted.
    await this.#publishing;
    if (!this.#asked) return;
    await this.#ask("DELETE", this.#path).catch(() => undefined);
  }

  /** Writes where there is something new, or it is time for a sign of life. Once at a time, so that no older one comes last. */
  publish(): Promise<void> {
    this.#publishing ??= this.#publish().finally(() => {
      this.#publishing = undefined;
    });
    return this.#publishing;
  }

  async #publish(): Promise<void> {
    const { changes } = this.#options.book;
    const quiet = this.#clock() - this.#published.at < SIGN_OF_LIFE_MS;
    if (changes === 0 || (changes === this.#published.changes && quiet)) return;
    this.#asked = true;
    try {
      await this.#ask("PATCH", `${this.#path}?fieldManager=${FIELD_MANAGER}&force=true`, this.#body());
      this.#published = { changes, at: this.#clock() };
    } catch (error) {
      this.#options.log.warn({ error: errorOf("tallies", error) }, "the tallies could not be published");
    }
  }

  get #name(): string {
    return `usher-tallies-${this.#options.replica}`;
  }

  get #path(): string {
    return `${collectionOf(this.#options.namespace)}/${pathSegment("name", this.#name)}`;
  }

  #body(): JsonObject {
    const { namespace, book, owner } = this.#options;
    const { text, left } = encodeTallies(book.list(), MOST_BYTES);
    return {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: this.#name,
        namespace,
        labels: { [LABEL]: "true" },
        // Without it two writes of the same would be one, and no sign of life.
        annotations: { "usher.dev/tally": String(Math.round(this.#clock())) },
        ...(owner === undefined ? {} : { ownerReferences: [owner] }),
      },
      data: { [ENTRY]: text, left: String(left) },
    };
  }

  async #ask(method: string, path: string, body?: JsonObject): Promise<void> {
    const contentType = "application/apply-patch+yaml";
    const answer = await this.#options.client.request(
      method,
      path,
      body === undefined ? {} : { body, contentType },
    );
    if (answer.status >= 300) throw new Error(refusalOf(`${method} ${this.#name}`, answer));
  }
}

/** Reads what all replicas have published, where this one leads. Its own tallies it takes from its book, as they are now. */
export class TallyCollector implements TallySource {
  readonly #options: TallyOptions & {
    readonly counted: (policies: readonly CountedTally[]) => void;
  };
  readonly #clock: () => number;
  /** Since when each published object has stood as it is, on our own clock. */
  readonly #seen = new Map<string, { readonly version: string; readonly since: number }>();
  #merged: ReadonlyMap<string, CountedTally> = new Map();
  /** Which collects were begun, and which of them was taken in last. */
  #begun = 0;
  #taken = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `counted` is told of the policies whose tallies have changed. */
  constructor(options: TallyOptions & { readonly counted: (policies: readonly CountedTally[]) => void }) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  of(module: string, policy: PolicyRef): CountedTally | undefined {
    return this.#merged.get(tallyKey(module, policy));
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.collect(), TALLY_EVERY_MS).unref();
    void this.collect();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async collect(): Promise<void> {
    const { client, namespace, replica, book, log, counted } = this.#options;
    this.#begun += 1;
    const turn = this.#begun;
    try {
      const answer = await client.request("GET", `${collectionOf(namespace)}?labelSelector=${LABEL}%3Dtrue`);
      if (answer.status !== 200) throw new Error(refusalOf("tallies", answer));
      // One that was asked for later has been answered earlier: it knows better.
      if (turn < this.#taken) return;
      this.#taken = turn;
      const published = listAt(answer.body, "items");
      this.#forgetAllBut(new Set(published.map(nameOf)));
      const own = `usher-tallies-${replica}`;
      const others = published.filter((item) => nameOf(item) !== own && !this.#orphaned(item));
      const before = this.#merged;
      const books = others.map((item) => decodeTallies(stringAt(item, "data", ENTRY) ?? ""));
      this.#merged = mergeTallies([book.list(), ...books]);
      const changed = changesOf(before, this.#merged);
      if (changed.length > 0) counted(changed);
      for (const item of published) if (nameOf(item) !== own && this.#orphaned(item)) await this.#bury(item);
    } catch (error) {
      log.warn({ error: errorOf("tallies", error) }, "the tallies of the replicas could not be read");
    }
  }

  /** Each replica has another name, so there is no end to them. */
  #forgetAllBut(names: ReadonlySet<string>): void {
    for (const name of this.#seen.keys()) if (!names.has(name)) this.#seen.delete(name);
  }

  #orphaned(item: Json): boolean {
    const name = nameOf(item);
    const version = stringAt(item, "metadata", "resourceVersion") ?? "";
    const known = this.#seen.get(name);
    if (known?.version === version) return this.#clock() - known.since >= ORPHANED_MS;
    this.#seen.set(name, { version, since: this.#clock() });
    return false;
  }

  async #bury(item: Json): Promise<void> {
    const { client, namespace } = this.#options;
    const resourceVersion = stringAt(item, "metadata", "resourceVersion") ?? "";
    const path = `${collectionOf(namespace)}/${pathSegment("name", nameOf(item))}`;
    // With its version: one that gives a sign of life right now stays.
    await client.request("DELETE", path, { body: { preconditions: { resourceVersion } } });
  }
}

function nameOf(item: Json): string {
  return stringAt(item, "metadata", "name") ?? "";
}

/** Also those that nobody counts any more: with nothing. */
function changesOf(
  before: ReadonlyMap<string, CountedTally>,
  now: ReadonlyMap<string, CountedTally>,
): CountedTally[] {
  const changes: CountedTally[] = [];
  for (const [key, tally] of now) if (!equal(json(before.get(key)), json(tally))) changes.push(tally);
  for (const [key, { module, policy }] of before)
    if (!now.has(key)) changes.push({ module, policy, outcomes: {} });
  return changes;
}

function json(tally: CountedTally | undefined): Json | undefined {
  return tally as unknown as Json | undefined;
}

function collectionOf(namespace: string): string {
  return `/api/v1/namespaces/${pathSegment("namespace", namespace)}/configmaps`;
}
