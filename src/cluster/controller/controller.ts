import type { Count, NeedMore } from "../../core/decision/decision.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import { Facts, MAX_ROUNDS } from "../../core/decision/need.ts";
import { resourceName } from "../../core/decision/request.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import type { Module } from "../../core/module/module.ts";
import {
  type ControllerStats,
  describeKey,
  type KeysContext,
  keyIdentity,
  type PlannedWrite,
  type ReconcileKey,
  type ReconcileResult,
  type Reconciler,
  type WriteCount,
} from "../../core/module/reconciler.ts";
import { kindResource } from "../../core/policy/kind.ts";
import type { PolicyRef } from "../../core/policy/policy-ref.ts";
import type { Change, View } from "../../core/view/view.ts";
import type { TallySource } from "../policy-statistics/tally-collector.ts";
import type { FetchNeeds } from "../source/fetch-needs.ts";
import { describeWrite, type MakeWrite, type PlannedWriteResult } from "./planned-writes.ts";
import { Workqueue, type WorkqueueOptions, type WorkResult } from "./workqueue.ts";

export interface ControllerOptions {
  readonly modules: readonly Module[];
  readonly view: () => View;
  /** Reads past every batch of commits: a write must be based on the stored state. */
  readonly fetch: FetchNeeds;
  readonly write: MakeWrite;
  /** Whether the view has a resource at a resourceVersion, or a later one. @default always */
  readonly has?: (resource: string, version: string) => boolean;
  /** Checked before every write. */
  readonly leading: () => boolean;
  readonly log: Log;
  readonly tallies?: TallySource;
  /** For reconcilers that ask for decisions. */
  readonly assembly?: Assembly;
  /** Receives the events and counts of reconcilers. @default they are dropped */
  readonly publish?: (events: readonly EventToWrite[], counts: readonly Count[]) => void;
  /** Receives the text of planned writes; then nothing is written. */
  readonly dryRun?: (text: string) => void;
  /** Milliseconds since 1970, for reconcilers. */
  readonly now?: () => number;
  /** Milliseconds of a monotonic clock, for reconcilers. */
  readonly clock?: () => number;
  readonly queue?: Omit<WorkqueueOptions<Item>, "work" | "identity">;
}

interface Item {
  readonly module: string;
  readonly key: ReconcileKey;
}

/** The last resourceVersion that an item wrote of each resource. */
interface OwnWrites {
  readonly versions: Map<string, string>;
  /** On the monotonic clock. */
  readonly waitUntil: number;
}

/** A watch delivers an event within milliseconds. */
const OWN_WRITES_POLL_MS = 20;

/**
 * An event may never come: a selector leaves the object out, or etcd was restored from a backup. Every write is
 * conditional on the version that it is based on, so a reconcile with an old view only costs a conflict.
 */
const OWN_WRITES_WAIT_MS = 10_000;

/** A reconciler with its state while this replica leads. */
interface Running {
  readonly reconciler: Reconciler;
  readonly state: unknown;
}

/**
 * Runs the reconcilers of all modules: changes become keys, keys become writes. It runs from `start` to `stop`, while
 * this replica leads; before and after it drops changes, because a new leader reconciles everything. The state of
 * reconcilers has the same lifetime.
 */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #reconcilers: ReadonlyMap<string, Reconciler>;
  readonly #running = new Map<string, Running>();
  /** The last write error of each item, by identity. */
  readonly #failures = new Map<string, { readonly module: string; readonly error: string }>();
  readonly #writes = new WriteCounter();
  /** Of items whose writes the view may not have yet, by identity. */
  readonly #ownWrites = new Map<string, OwnWrites>();
  readonly #resources: ReadonlyMap<string, string>;
  #queue: Workqueue<Item> | undefined;

  constructor(options: ControllerOptions) {
    this.#options = options;
    const reconcilers = new Map<string, Reconciler>();
    for (const { name, reconciler } of options.modules)
      if (reconciler !== undefined) reconcilers.set(name, reconciler);
    this.#reconcilers = reconcilers;
    this.#resources = resourcesByKind(options.modules);
  }

  /** Every existing object is reconciled at low priority, which can take minutes: a change need not wait for it. */
  start(): void {
    if (this.#queue !== undefined) return;
    const work = (item: Item) => this.#work(item);
    this.#queue = new Workqueue({ ...this.#options.queue, identity: itemIdentity, work });
    for (const [module, reconciler] of this.#reconcilers)
      this.#running.set(module, { reconciler, state: reconciler.initialState() });
    this.resync();
  }

  /** Reconciles every existing object again, as at the start. */
  resync(): void {
    const context = this.#context();
    const existing = [...existingObjects(this.#options.modules, context.view)];
    for (const [module, { reconciler, state }] of this.#running) {
      const { initialKeys } = reconciler;
      if (initialKeys === undefined)
        for (const change of existing) this.#enqueueChange(module, change, context, "low");
      else this.#enqueue(module, {}, () => initialKeys(state, context), reconciler.initialPriority ?? "low");
    }
  }

  /** Resolves when no write is in flight. */
  async stop(): Promise<void> {
    const queue = this.#queue;
    this.#queue = undefined;
    await queue?.stop();
    if (this.#queue !== undefined) return;
    this.#running.clear();
    this.#failures.clear();
    this.#ownWrites.clear();
  }

  get stats(): ControllerStats {
    const failing = new Map([...this.#reconcilers.keys()].map((module) => [module, 0]));
    for (const { module } of this.#failures.values()) failing.set(module, (failing.get(module) ?? 0) + 1);
    const context = this.#context();
    const figures = [...this.#running.values()].flatMap(
      ({ reconciler, state }) => reconciler.figures?.(state, context) ?? [],
    );
    const items = this.#queue?.size ?? { due: 0, later: 0, running: 0 };
    return { items, failing, writes: this.#writes.counts, figures };
  }

  /** For changes that the view has applied. */
  changed(changes: Iterable<Change>): void {
    if (this.#queue === undefined) return;
    const context = this.#context();
    for (const change of changes)
      for (const module of this.#running.keys()) this.#enqueueChange(module, change, context);
  }

  /** For policies whose tallies have changed. */
  talliesChanged(policies: Iterable<{ readonly module: string; readonly policy: PolicyRef }>): void {
    if (this.#queue === undefined) return;
    const context = this.#context();
    for (const { module, policy } of policies) {
      const change = existingPolicy(this.#options.modules, module, policy, context.view);
      if (change === undefined) continue;
      const tallyKeys = this.#running.get(module)?.reconciler.tallyKeys;
      if (tallyKeys === undefined) this.#enqueueChange(module, change, context);
      else this.#enqueue(module, { name: change.name }, () => tallyKeys(change));
    }
  }

  #context(): KeysContext {
    const { assembly } = this.#options;
    return { view: this.#options.view(), ...(assembly && { assembly }) };
  }

  #enqueueChange(module: string, change: Change, context: KeysContext, priority?: "low" | "normal"): void {
    const running = this.#running.get(module);
    if (running === undefined) return;
    const { resource, name } = change;
    this.#enqueue(
      module,
      { resource, name },
      () => running.reconciler.keys(change, running.state, context),
      priority,
    );
  }

  #enqueue(
    module: string,
    about: Readonly<Record<string, string>>,
    keys: () => Iterable<ReconcileKey>,
    priority?: "low" | "normal",
  ): void {
    try {
      for (const key of keys()) {
        if (priority === "low") this.#queue?.addLowPriority({ module, key });
        else this.#queue?.add({ module, key });
      }
    } catch (error) {
      this.#options.log.warn({ module, ...about, error: messageOf(error) }, RECONCILER_ERROR);
    }
  }

  async #work(item: Item): Promise<WorkResult> {
    const { module, key } = item;
    const running = this.#running.get(module);
    if (running === undefined) return { done: true };
    if (!this.#readsOwnWrites(item)) return { done: true, afterMs: OWN_WRITES_POLL_MS };
    const { fetch, now = Date.now, tallies, dryRun, log } = this.#options;
    let result: ReconcileResult;
    try {
      result = await reconcileWithFacts(fetch, (facts) =>
        running.reconciler.reconcile(key, running.state, {
          ...this.#context(),
          facts,
          now: now(),
          elapsed: this.#clock,
          failure: (other) => this.#failures.get(itemIdentity({ module, key: other }))?.error,
          ...(tallies && { tallies }),
        }),
      );
    } catch (error) {
      log.warn({ module, key: describeKey(key), error: messageOf(error) }, RECONCILER_ERROR);
      return { retry: true };
    }
    if (dryRun !== undefined) dryRun(describeResult(module, key, result));
    else if (!(await this.#write(item, running, result))) return { retry: true };
    else this.#options.publish?.(result.events ?? [], result.counts ?? []);
    const { enqueue = [], requeueAfter } = result;
    this.#enqueue(module, {}, () => enqueue);
    return { done: true, ...(requeueAfter === undefined ? {} : { afterMs: requeueAfter * 1_000 }) };
  }

  get #clock(): number {
    return (this.#options.clock ?? (() => performance.now()))();
  }

  /** Whether the view has what this item wrote last: planned with an older view, the same write would come again. */
  #readsOwnWrites(item: Item): boolean {
    const id = itemIdentity(item);
    const own = this.#ownWrites.get(id);
    if (own === undefined) return true;
    const { has = () => true } = this.#options;
    const missing = [...own.versions].filter(([resource, version]) => !has(resource, version));
    if (missing.length > 0 && this.#clock < own.waitUntil) return false;
    this.#ownWrites.delete(id);
    if (missing.length > 0)
      this.#options.log.debug(
        { module: item.module, key: describeKey(item.key), resources: missing.map(([name]) => name) },
        "own write is not in the view yet; reconciling without it",
      );
    return true;
  }

  #recordOwnWrite(item: Item, write: PlannedWrite, version: string): void {
    const resource = "apply" in write ? this.#resources.get(kindKey(write.apply)) : resourceOf(write);
    if (resource === undefined) return;
    const id = itemIdentity(item);
    const versions = this.#ownWrites.get(id)?.versions ?? new Map<string, string>();
    this.#ownWrites.set(id, {
      versions: versions.set(resource, version),
      waitUntil: this.#clock + OWN_WRITES_WAIT_MS,
    });
  }

  /** In order; the first failure ends the result, because later writes may depend on it. */
  async #write(item: Item, running: Running, { writes }: ReconcileResult): Promise<boolean> {
    const { leading, write, log } = this.#options;
    for (const planned of writes) {
      if (!leading()) return false;
      const result = await write(planned);
      this.#writes.count(item.module, planned, result);
      const facts = { module: item.module, key: describeKey(item.key), write: describeWrite(planned) };
      if (result === "done" || (typeof result === "object" && "wrote" in result)) {
        log.debug(facts, "wrote object");
        if (result !== "done") this.#recordOwnWrite(item, planned, result.wrote);
      } else {
        if (result === "conflict") log.debug(facts, "conflict; reconciling again");
        else {
          log.warn({ ...facts, error: result.failed }, "write failed; retrying with backoff");
          this.#recordFailure(item, running, result.failed);
        }
        return false;
      }
    }
    this.#recordFailure(item, running, undefined);
    return true;
  }

  /** Records whether the writes of an item fail, and enqueues the keys that depend on it. */
  #recordFailure(item: Item, { reconciler, state }: Running, error: string | undefined): void {
    const { module, key } = item;
    const id = itemIdentity(item);
    if (this.#failures.get(id)?.error === error) return;
    if (error === undefined) this.#failures.delete(id);
    else this.#failures.set(id, { module, error });
    const { failureKeys } = reconciler;
    if (failureKeys === undefined) return;
    this.#enqueue(module, { key: describeKey(key) }, () => failureKeys(key, state, this.#context()));
  }
}

function itemIdentity({ module, key }: Item): string {
  return `${module} ${keyIdentity(key)}`;
}

const RECONCILER_ERROR = "reconciler error";

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The output of a dry run for one key. */
export function describeResult(
  module: string,
  key: ReconcileKey,
  { writes, requeueAfter }: ReconcileResult,
): string {
  const head = `${module} ${describeKey(key)}: ${writes.length === 0 ? "nothing to do" : ""}`.trimEnd();
  const lines = writes.map((write) => `  ${describeWrite(write)}\n    ${JSON.stringify(write)}`);
  const tail = requeueAfter === undefined ? [] : [`  requeue after ${requeueAfter} s`];
  return [head, ...lines, ...tail].join("\n");
}

/** Counts writes by module, resource and result. */
class WriteCounter {
  readonly #counts = new Map<string, WriteCount>();

  get counts(): readonly WriteCount[] {
    return [...this.#counts.values()];
  }

  count(module: string, write: PlannedWrite, outcome: PlannedWriteResult): void {
    const result = typeof outcome === "string" ? outcome : "wrote" in outcome ? "done" : "failed";
    const resource = resourceOf(write);
    const id = `${module} ${resource} ${result}`;
    const count = (this.#counts.get(id)?.count ?? 0) + 1;
    this.#counts.set(id, { module, resource, result, count });
  }
}

function resourceOf(write: PlannedWrite): string {
  if ("apply" in write) return stringAt(write.apply, "kind") ?? "";
  return "delete" in write ? write.delete.resource : write.of.resource;
}

const kindKey = (object: JsonObject): string =>
  `${stringAt(object, "apiVersion") ?? ""} ${stringAt(object, "kind") ?? ""}`;

/** The resources that modules read, by the `apiVersion` and `kind` of their objects. */
function resourcesByKind(modules: readonly Module[]): Map<string, string> {
  const resources = new Map<string, string>();
  for (const { kinds, reads } of modules) {
    for (const kind of kinds)
      for (const { name } of kind.versions)
        resources.set(kindKey({ apiVersion: `${kind.group}/${name}`, kind: kind.kind }), kindResource(kind));
    for (const read of reads) {
      const apiVersion = read.group === "" ? read.version : `${read.group}/${read.version}`;
      resources.set(kindKey({ apiVersion, kind: read.kind }), resourceName(read));
    }
  }
  return resources;
}

/** Every object of the view that a module has declared, as if it had just been created. */
function* existingObjects(modules: readonly Module[], view: View): Iterable<Change> {
  const resources = new Set<string>();
  for (const { kinds, reads } of modules) {
    for (const kind of kinds) resources.add(kindResource(kind));
    for (const read of reads) resources.add(resourceName(read));
  }
  for (const resource of resources)
    for (const object of view.list(resource))
      yield { resource, namespace: namespaceOf(object), name: nameOf(object), object };
}

/** A policy as in the view. */
function existingPolicy(
  modules: readonly Module[],
  module: string,
  policy: PolicyRef,
  view: View,
): Change | undefined {
  const kinds = modules.find(({ name }) => name === module)?.kinds ?? [];
  const kind = kinds.find((one) => one.kind === policy.kind);
  if (kind === undefined) return undefined;
  const { namespace = "", name } = policy;
  const resource = kindResource(kind);
  const object = view.get(resource, namespace, name);
  return object === undefined ? undefined : { resource, namespace, name, object };
}

/** For all needs of one round: long, because no request waits for it, and short enough to try again soon after an answer was lost. */
const FETCH_MS = 15_000;

/** Reconciles one key, fetches its needs, and reconciles it again: as often as an evaluation may, then it throws. */
async function reconcileWithFacts(
  fetch: FetchNeeds,
  reconcile: (facts: Facts) => ReconcileResult | NeedMore,
): Promise<ReconcileResult> {
  const facts = new Facts();
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    // In the last round unmet needs count as failed, as in an evaluation.
    if (round === MAX_ROUNDS) facts.close("too many rounds of questions");
    const result = reconcile(facts);
    if (!("need" in result)) return result;
    if (round < MAX_ROUNDS) await fetchInto(facts, fetch, result.need);
  }
  throw new Error(`needs more facts after ${MAX_ROUNDS} rounds`);
}

async function fetchInto(facts: Facts, fetch: FetchNeeds, needs: Parameters<FetchNeeds>[0]): Promise<void> {
  const ended = new AbortController();
  const until = performance.now() + FETCH_MS;
  const timer = setTimeout(() => ended.abort(), FETCH_MS);
  try {
    const remaining = () => until - performance.now();
    const found = await fetch(needs, { signal: ended.signal, remaining });
    for (const [i, need] of needs.entries()) facts.set(need, found[i] ?? { failed: "no answer" });
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
}
