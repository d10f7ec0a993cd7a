import type { Commit } from "../../core/decision/decision.ts";
import { DEADLINE_EXCEEDED, type Fact } from "../../core/decision/need.ts";
import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import type { Deadline } from "../../core/evaluate/source.ts";
import { errorMessage } from "../client/api-response.ts";
import type { Client } from "../client/client.ts";
import type { ResourceResolver } from "../client/discovery.ts";
import { describeTarget, type ObjectTarget, readObject, swapObject } from "../client/object-access.ts";
import { CommitBatcher } from "./commit-batcher.ts";

/**
 * How long an idle batcher is kept, for bursts and for requests that retry after a conflict. It costs its object's memory only: an idle
 * batcher reads again before it answers.
 */
const IDLE_TTL_MS = 2_000;

/** Idle batchers that are kept; beyond, they are closed at once. */
const MOST_IDLE = 1_000;

interface BatcherOptions {
  readonly clock?: () => number;
  readonly random?: () => number;
}

/** A batcher for each object that requests are changing. Shared by needs and commits. */
export class CommitBatchers {
  readonly #client: Client;
  readonly #resources: ResourceResolver;
  readonly #clock: () => number;
  readonly #random: () => number;
  readonly #open = new Map<string, CommitBatcher>();
  readonly #closing = new Map<string, NodeJS.Timeout>();
  /** The batchers in which a request may hold a turn. */
  readonly #turns = new WeakMap<AbortSignal, Set<CommitBatcher>>();

  constructor(client: Client, resources: ResourceResolver, options: BatcherOptions = {}) {
    this.#client = client;
    this.#resources = resources;
    this.#clock = options.clock ?? (() => performance.now());
    this.#random = options.random ?? Math.random;
  }

  /** The number of open batchers. @visibleForTesting */
  get size(): number {
    return this.#open.size;
  }

  isOpen(target: ObjectTarget): boolean {
    return this.#open.has(batcherKey(target));
  }

  /** `undefined` if no request is changing the object. */
  fetch(target: ObjectTarget, deadline: Deadline): Promise<Fact> | undefined {
    const batcher = this.#open.get(batcherKey(target));
    if (batcher === undefined) return undefined;
    const turns = this.#turns.get(deadline.signal) ?? new Set();
    this.#turns.set(deadline.signal, turns.add(batcher));
    return batcher.fetch(deadline);
  }

  /** Waits until the changes in flight have been written or have failed; each has its own deadline. */
  async waitForWrites(target: ObjectTarget): Promise<void> {
    await this.#open.get(batcherKey(target))?.waitForWrites();
  }

  /** A request that fetches again no longer needs its turns. */
  release({ signal }: Deadline): void {
    for (const batcher of this.#turns.get(signal) ?? []) batcher.release(signal);
    this.#turns.delete(signal);
  }

  commit(commit: Commit, deadline: Deadline): Promise<CommitResult> {
    const { object, resourceVersion } = commit;
    return this.#batcherFor(commit).commit(object, resourceVersion, deadline);
  }

  #batcherFor({ resource, namespace, name }: ObjectTarget): CommitBatcher {
    const target: ObjectTarget = { resource, name, ...(namespace === undefined ? {} : { namespace }) };
    const key = batcherKey(target);
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const batcher = new CommitBatcher({
      read: (deadline) => readObject(this.#client, this.#resources, target, deadline),
      swap: (object, version, signal) =>
        swapObject(this.#client, this.#resources, target, object, version, signal),
      clock: this.#clock,
      random: this.#random,
      onIdle: () => this.#closeLater(key, batcher),
    });
    this.#open.set(key, batcher);
    return batcher;
  }

  #closeLater(key: string, batcher: CommitBatcher): void {
    if (this.#closing.has(key) || this.#open.get(key) !== batcher) return;
    if (this.#closing.size >= MOST_IDLE) {
      this.#open.delete(key);
      return;
    }
    const close = () => {
      this.#closing.delete(key);
      if (batcher.idle) this.#open.delete(key);
    };
    this.#closing.set(key, setTimeout(close, IDLE_TTL_MS).unref());
  }
}

/** Also the order in which a request that needs several batchers waits for them, which rules out deadlocks. */
export function batcherKey({ resource, namespace = "", name }: ObjectTarget): string {
  return `${resource} ${namespace}/${name}`;
}

type MakeCommit = (commit: Commit, deadline: Deadline) => Promise<CommitResult>;

/** Writes that must succeed before an allowed response: each replaces the version of its fact, or conflicts. */
export function createCommits(batchers: CommitBatchers): MakeCommit {
  return async (commit, deadline) => {
    if (deadline.remaining() <= 0) return DEADLINE_EXCEEDED;
    try {
      return await batchers.commit(commit, deadline);
    } catch (error) {
      return { failed: errorMessage(describeTarget(commit), error) };
    }
  };
}

/** For a process that only serves: a request that needs a commit is denied, because it must not pass uncounted. */
export const refuseCommit: MakeCommit = async (commit) => ({
  failed: `${describeTarget(commit)}: usher does not operate this cluster and writes nothing to it`,
});
