import type { CountedTally } from "../../core/evaluate/effects.ts";
import type { PolicyRef } from "../../core/evaluate/finding.ts";
import { equal, type Json, stringAt } from "../../core/json.ts";
import type { ReconcileContext } from "../../core/module/reconciler.ts";
import { errorMessage } from "../client/api-response.ts";
import { listAll } from "../client/list-pages.ts";
import { pathSegment } from "../client/path-segment.ts";
import { decodeTallies, mergeTallies, tallyKey } from "./tallies.ts";
import {
  collectionOf,
  ENTRY,
  LABEL,
  SIGN_OF_LIFE_MS,
  TALLY_EVERY_MS,
  type TallyOptions,
  tallyName,
} from "./tally-objects.ts";

/** What planners ask: all replicas together, since each of them started. So a count falls when a replica goes. */
export type TallySource = NonNullable<ReconcileContext["tallies"]>;

/** What has not changed for three signs of life has no owner any more. */
const ORPHANED_MS = 3 * SIGN_OF_LIFE_MS;

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
      const published = await listAll(client, collectionOf(namespace), { labelSelector: `${LABEL}=true` });
      // One that was asked for later has been answered earlier: it knows better.
      if (turn < this.#taken) return;
      this.#taken = turn;
      this.#forgetAllBut(new Set(published.map(nameOf)));
      const own = tallyName(replica);
      const others = published.filter((item) => nameOf(item) !== own && !this.#orphaned(item));
      const before = this.#merged;
      const books = others.map((item) => decodeTallies(stringAt(item, "data", ENTRY) ?? ""));
      this.#merged = mergeTallies([book.list(), ...books]);
      const changed = changesOf(before, this.#merged);
      if (changed.length > 0) counted(changed);
      for (const item of published) if (nameOf(item) !== own && this.#orphaned(item)) await this.#bury(item);
    } catch (error) {
      log.warn({ error: errorMessage("tallies", error) }, "the tallies of the replicas could not be read");
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
