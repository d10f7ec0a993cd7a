import type { Commit } from "../../core/evaluate/decision.ts";
import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import type { Fact } from "../../core/evaluate/need.ts";
import type { Deadline } from "../../core/view/source.ts";
import type { Client } from "../client/client.ts";
import type { ResourceResolver } from "../client/discovery.ts";
import { readObject, swapObject, type Target } from "../client/object-access.ts";
import { CommitBatcher } from "./commit-batcher.ts";

/**
 * How long a lane stays open after the last one has left it. A burst then finds it open, and whoever was told of a conflict comes
 * back into it. It costs nothing but its object: what is given out of a quiet lane is read anew.
 */
const LINGER_MS = 2_000;

/** CommitBatchers that are kept open for those who may come; beyond, a quiet one is closed at once. */
const MOST_QUIET = 1_000;

export interface BatcherChances {
  readonly clock?: () => number;
  readonly random?: () => number;
}

/** The objects that are being changed by requests right now, a lane for each. Shared by needs and commits. */
export class CommitBatchers {
  readonly #client: Client;
  readonly #resources: ResourceResolver;
  readonly #clock: () => number;
  readonly #random: () => number;
  readonly #open = new Map<string, CommitBatcher>();
  readonly #closing = new Map<string, NodeJS.Timeout>();
  /** In which lanes a request may hold a turn. */
  readonly #turns = new WeakMap<AbortSignal, Set<CommitBatcher>>();

  constructor(client: Client, resources: ResourceResolver, chances: BatcherChances = {}) {
    this.#client = client;
    this.#resources = resources;
    this.#clock = chances.clock ?? (() => performance.now());
    this.#random = chances.random ?? Math.random;
  }

  /** How many are open, for metrics and tests. */
  get size(): number {
    return this.#open.size;
  }

  isOpen(target: Target): boolean {
    return this.#open.has(batcherKey(target));
  }

  /** `undefined` where nobody is changing the object. */
  fetch(target: Target, deadline: Deadline): Promise<Fact> | undefined {
    const lane = this.#open.get(batcherKey(target));
    if (lane === undefined) return undefined;
    const turns = this.#turns.get(deadline.signal) ?? new Set();
    this.#turns.set(deadline.signal, turns.add(lane));
    return lane.fetch(deadline);
  }

  /** A request that fetches again no longer needs the turns that it holds. */
  leave({ signal }: Deadline): void {
    for (const lane of this.#turns.get(signal) ?? []) lane.leave(signal);
    this.#turns.delete(signal);
  }

  commit(commit: Commit, deadline: Deadline): Promise<CommitResult> {
    const { object, resourceVersion } = commit;
    return this.#lane(commit).commit(object, resourceVersion, deadline);
  }

  #lane({ resource, namespace, name }: Target): CommitBatcher {
    const target: Target = { resource, name, ...(namespace === undefined ? {} : { namespace }) };
    const key = batcherKey(target);
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const lane = new CommitBatcher({
      read: (deadline) => readObject(this.#client, this.#resources, target, deadline),
      swap: (object, version, signal) =>
        swapObject(this.#client, this.#resources, target, object, version, signal),
      clock: this.#clock,
      random: this.#random,
      idle: () => this.#quiet(key, lane),
    });
    this.#open.set(key, lane);
    return lane;
  }

  #quiet(key: string, lane: CommitBatcher): void {
    if (this.#closing.has(key) || this.#open.get(key) !== lane) return;
    if (this.#closing.size >= MOST_QUIET) {
      this.#open.delete(key);
      return;
    }
    const close = () => {
      this.#closing.delete(key);
      if (lane.idle) this.#open.delete(key);
    };
    this.#closing.set(key, setTimeout(close, LINGER_MS).unref());
  }
}

/** Also the order in which a request that needs several lanes enters them. */
export function batcherKey({ resource, namespace = "", name }: Target): string {
  return `${resource} ${namespace}/${name}`;
}
