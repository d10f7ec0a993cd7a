import type { CountedTally, DatedConflict, Tally } from "../../core/decision/tally.ts";
import { fairShare } from "../../core/evaluate/fair-share.ts";
import { at, isObject, type Json, listAt, stringAt } from "../../core/json.ts";
import { byText } from "../../core/order.ts";
import { type PolicyRef, policyKey } from "../../core/policy/policy-ref.ts";

/** Beyond this, the least recently counted policies are evicted. */
const MOST_POLICIES = 10_000;

/** Kept per policy: enough to see a common cause. */
const MOST_CONFLICTS = 5;
/** A message names an object, a field and two values; longer ones are cut. */
const MESSAGE_LENGTH = 256;

/** Includes the uid: a policy that was deleted and created again is another one. */
export function tallyKey(module: string, policy: PolicyRef): string {
  return `${module} ${policyKey(policy)} ${policy.uid ?? ""}`;
}

/** The tallies of one replica since its start. */
export class Tallies {
  readonly #tallies = new Map<string, CountedTally>();
  readonly #most: number;
  #changes = 0;

  constructor(most = MOST_POLICIES) {
    this.#most = most;
  }

  /** Increases with every change. */
  get changes(): number {
    return this.#changes;
  }

  add(tallies: readonly Tally[], now: number): void {
    for (const tally of tallies) {
      const key = tallyKey(tally.module, tally.policy);
      const { conflicts = [], ...rest } = tally;
      const counted: CountedTally = {
        ...rest,
        ...((tally.outcomes.applied ?? 0) > 0 ? { lastApplied: now } : {}),
        ...conflictsOf(
          conflicts.map((one) => ({ ...one, message: one.message.slice(0, MESSAGE_LENGTH), at: now })),
        ),
      };
      const before = this.#tallies.get(key);
      // Reinserted, so that the map is ordered by the latest change.
      this.#tallies.delete(key);
      this.#tallies.set(key, before === undefined ? counted : sum(before, counted));
      this.#changes += 1;
    }
    for (const key of this.#tallies.keys()) {
      if (this.#tallies.size <= this.#most) break;
      this.#tallies.delete(key);
    }
  }

  /** The most recently counted first. */
  list(): CountedTally[] {
    return [...this.#tallies.values()].reverse();
  }
}

/** Merges the tallies of replicas: sums of counts, the latest time, the newest generation. Independent of the order. */
export function mergeTallies(replicas: Iterable<Iterable<CountedTally>>): Map<string, CountedTally> {
  const merged = new Map<string, CountedTally>();
  for (const tallies of replicas) {
    for (const tally of tallies) {
      const key = tallyKey(tally.module, tally.policy);
      const before = merged.get(key);
      merged.set(key, before === undefined ? tally : sum(before, tally));
    }
  }
  return merged;
}

function sum(a: CountedTally, b: CountedTally): CountedTally {
  const outcomes: Partial<Record<Outcome, number>> = { ...a.outcomes };
  for (const outcome of OUTCOMES) {
    const more = b.outcomes[outcome];
    if (more !== undefined) outcomes[outcome] = (outcomes[outcome] ?? 0) + more;
  }
  const newer = (b.policy.generation ?? 0) >= (a.policy.generation ?? 0) ? b.policy : a.policy;
  const last = Math.max(a.lastApplied ?? 0, b.lastApplied ?? 0);
  return {
    module: a.module,
    policy: newer,
    outcomes,
    ...(last > 0 ? { lastApplied: last } : {}),
    ...conflictsOf([...(a.conflicts ?? []), ...(b.conflicts ?? [])]),
  };
}

/**
 * The latest conflict of each field of each object, the latest first, limited per namespace. The text breaks ties, so
 * that all replicas agree.
 */
function conflictsOf(all: readonly DatedConflict[]): Pick<CountedTally, "conflicts"> {
  if (all.length === 0) return {};
  const latest = new Map<string, DatedConflict>();
  for (const one of all) {
    const key = `${one.object} ${one.field}`;
    const before = latest.get(key);
    if (before === undefined || compareConflicts(one, before) < 0) latest.set(key, one);
  }
  const sorted = [...latest.values()].sort(compareConflicts);
  return { conflicts: fairShare(sorted, ({ object }) => object, MOST_CONFLICTS) };
}

const conflictOrder = byText(({ object, field, message }: DatedConflict) =>
  JSON.stringify([object, field, message]),
);

function compareConflicts(a: DatedConflict, b: DatedConflict): number {
  if (a.at !== b.at) return b.at - a.at;
  return conflictOrder(a, b);
}

type Outcome = keyof Tally["outcomes"];

/** In the order of the encoding. New outcomes go last, so that replicas of two versions can read each other's tallies. */
const OUTCOMES: readonly Outcome[] = [
  "applied",
  "same",
  "skipped",
  "violated",
  "would-violate",
  "authorized",
  "failed",
  "matched",
];

/** Encodes as much as fits into the limit; `left` is the number of tallies that did not. The most recently counted come first. */
export function encodeTallies(
  tallies: readonly CountedTally[],
  mostBytes: number,
): { readonly text: string; readonly left: number } {
  const lines: string[] = [];
  let bytes = 2;
  for (const { module, policy, outcomes, lastApplied, conflicts = [] } of tallies) {
    const { kind, namespace = null, name, uid = null, generation = null } = policy;
    const counts = OUTCOMES.map((outcome) => outcomes[outcome] ?? 0);
    const line = JSON.stringify([
      module,
      kind,
      namespace,
      name,
      uid,
      generation,
      lastApplied ?? null,
      counts,
      ...(conflicts.length === 0
        ? []
        : [conflicts.map(({ object, field, message, at: time }) => [object, field, message, time])]),
    ]);
    bytes += Buffer.byteLength(line) + 2;
    if (bytes > mostBytes) break;
    lines.push(line);
  }
  return { text: `[${lines.join(",\n")}]`, left: tallies.length - lines.length };
}

/** Decodes tallies of another replica. Skips those that can't be decoded: a later version may write another format. */
export function decodeTallies(text: string): CountedTally[] {
  let parsed: Json;
  try {
    parsed = JSON.parse(text) as Json;
  } catch {
    return [];
  }
  const tallies: CountedTally[] = [];
  for (const line of Array.isArray(parsed) ? parsed : []) {
    const tally = tallyOf(line);
    if (tally !== undefined) tallies.push(tally);
  }
  return tallies;
}

function tallyOf(line: Json): CountedTally | undefined {
  if (isObject(line)) return undefined;
  const [module, kind, namespace, name, uid] = [0, 1, 2, 3, 4].map((i) => stringAt(line, i));
  const [generation, lastApplied] = [5, 6].map((i) => at(line, i));
  if (module === undefined || kind === undefined || name === undefined) return undefined;
  const outcomes: Partial<Record<Outcome, number>> = {};
  for (const [i, outcome] of OUTCOMES.entries()) {
    const count = listAt(line, 7)[i];
    if (typeof count === "number" && Number.isSafeInteger(count) && count > 0) outcomes[outcome] = count;
  }
  const policy: PolicyRef = {
    kind,
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(typeof generation === "number" ? { generation } : {}),
  };
  return {
    module,
    policy,
    outcomes,
    ...(typeof lastApplied === "number" ? { lastApplied } : {}),
    ...conflictsOf(listAt(line, 8).flatMap(conflictOf)),
  };
}

function conflictOf(item: Json): DatedConflict[] {
  const [object, field, message] = [0, 1, 2].map((i) => stringAt(item, i));
  const time = at(item, 3);
  if (object === undefined || field === undefined || message === undefined) return [];
  return typeof time === "number" && Number.isSafeInteger(time) ? [{ object, field, message, at: time }] : [];
}
