import type { CountedTally } from "../../core/decision/tally.ts";
import { equal, type Json, stringAt } from "../../core/json.ts";
import type { ReconcileContext } from "../../core/module/reconciler.ts";
import type { PolicyRef } from "../../core/policy/policy-ref.ts";
import { errorMessage } from "../client/api-response.ts";
import { pathSegment } from "../client/discovery.ts";
import { listAll } from "../client/list-pages.ts";
import { decodeTallies, encodeTallies, mergeTallies, tallyKey } from "./tallies.ts";
import {
  collectionOf,
  ENTRY,
  HEARTBEAT_MS,
  LABEL,
  MOST_BYTES,
  RETIRED,
  TALLY_INTERVAL_MS,
  type TallyOptions,
  tallyName,
  writeTallies,
} from "./tally-objects.ts";

/** Tallies of all replicas, including those that are gone, for reconcilers. */
export type TallySource = NonNullable<ReconcileContext["tallies"]>;

/** Tallies that were unchanged for three heartbeats have no replica. Their sum replaces them. */
const ORPHANED_MS = 3 * HEARTBEAT_MS;

/** Collects the published tallies of all replicas on the leader. Its own are read from memory. */
export class TallyCollector implements TallySource {
  readonly #options: TallyOptions & {
    readonly counted: (policies: readonly CountedTally[]) => void;
  };
  readonly #clock: () => number;
  /** Since when each ConfigMap is unchanged, by the own clock. */
  readonly #observed = new Map<string, { readonly version: string; readonly since: number }>();
  #merged: ReadonlyMap<string, CountedTally> = new Map();
  /** Numbers of the last collection started, and of the last one applied. */
  #started = 0;
  #applied = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `counted` is called with the policies whose tallies changed. */
  constructor(options: TallyOptions & { readonly counted: (policies: readonly CountedTally[]) => void }) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
  }

  of(module: string, policy: PolicyRef): CountedTally | undefined {
    return this.#merged.get(tallyKey(module, policy));
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.collect(), TALLY_INTERVAL_MS).unref();
    void this.collect();
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async collect(): Promise<void> {
    const { client, namespace, replica, tallies, log, counted } = this.#options;
    this.#started += 1;
    const number = this.#started;
    try {
      const published = await listAll(client, collectionOf(namespace), { labelSelector: `${LABEL}=true` });
      // A later collection finished earlier.
      if (number < this.#applied) return;
      this.#applied = number;
      this.#forgetAllBut(new Set(published.map(nameOf)));
      const own = tallyName(replica);
      const retired = published.find((item) => nameOf(item) === RETIRED);
      // A replica that was not seen for that long no longer counts, even if it publishes again.
      const [removed, others] = partition(
        published.filter((item) => nameOf(item) !== own && item !== retired),
        (item) => retiredNames(retired).includes(nameOf(item)),
      );
      const before = this.#merged;
      const gone = retired === undefined ? [] : [retired];
      this.#merged = mergeTallies([tallies.list(), ...[...gone, ...others].map(talliesIn)]);
      const changed = changesOf(before, this.#merged);
      if (changed.length > 0) counted(changed);
      const orphaned = others.filter((item) => this.#isOrphaned(item));
      if (orphaned.length > 0) await this.#retire(orphaned, removed, retired);
      for (const item of [...removed, ...orphaned]) await this.#delete(item);
    } catch (error) {
      log.warn({ error: errorMessage("tallies", error) }, "failed to collect tallies");
    }
  }

  /** Names of replicas never repeat, so the map would grow forever. */
  #forgetAllBut(names: ReadonlySet<string>): void {
    for (const name of this.#observed.keys()) if (!names.has(name)) this.#observed.delete(name);
  }

  #isOrphaned(item: Json): boolean {
    const name = nameOf(item);
    const version = stringAt(item, "metadata", "resourceVersion") ?? "";
    const known = this.#observed.get(name);
    if (known?.version === version) return this.#clock() - known.since >= ORPHANED_MS;
    this.#observed.set(name, { version, since: this.#clock() });
    return false;
  }

  /** In one write, with the names of the summed ConfigMaps: until they are deleted, they must not count twice. */
  async #retire(
    orphaned: readonly Json[],
    removed: readonly Json[],
    retired: Json | undefined,
  ): Promise<void> {
    const sum = mergeTallies([...orphaned, ...(retired === undefined ? [] : [retired])].map(talliesIn));
    const { text, left } = encodeTallies([...sum.values()], MOST_BYTES);
    const names = JSON.stringify([...removed, ...orphaned].map(nameOf));
    const version = stringAt(retired, "metadata", "resourceVersion");
    await writeTallies(
      this.#options,
      RETIRED,
      { [ENTRY]: text, left: String(left) },
      { [SUMMED]: names },
      version,
    );
  }

  async #delete(item: Json): Promise<void> {
    const { client, namespace } = this.#options;
    const resourceVersion = stringAt(item, "metadata", "resourceVersion") ?? "";
    const path = `${collectionOf(namespace)}/${pathSegment("name", nameOf(item))}`;
    // Conditional on its version: a heartbeat in between keeps it.
    await client.request("DELETE", path, { body: { preconditions: { resourceVersion } } });
  }
}

/** The names of the ConfigMaps whose tallies are in the sum, as long as they may still exist. */
const SUMMED = "usher.dev/summed-tallies";

function retiredNames(retired: Json | undefined): readonly Json[] {
  try {
    const names = JSON.parse(stringAt(retired, "metadata", "annotations", SUMMED) ?? "[]") as Json;
    return Array.isArray(names) ? names : [];
  } catch {
    return [];
  }
}

function talliesIn(item: Json): CountedTally[] {
  return decodeTallies(stringAt(item, "data", ENTRY) ?? "");
}

function partition<Item>(items: readonly Item[], isFirst: (item: Item) => boolean): [Item[], Item[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

function nameOf(item: Json): string {
  return stringAt(item, "metadata", "name") ?? "";
}

/** Includes policies that no replica counts any longer, with no outcomes. */
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
