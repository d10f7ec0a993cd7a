import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { EventToWrite } from "../../core/evaluate/effects.ts";
import { MAX_ROUNDS } from "../../core/evaluate/evaluate.ts";
import type { PolicyRef } from "../../core/evaluate/finding.ts";
import { Facts } from "../../core/evaluate/need.ts";
import { resourceName } from "../../core/evaluate/request.ts";
import { stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import type { Module } from "../../core/module/module.ts";
import type {
  ControllerFigures,
  PlannedWrite,
  PlannedWrites,
  ReconcileResult,
  Reconciler,
} from "../../core/module/reconciler.ts";
import { kindResource } from "../../core/policy/kind.ts";
import type { Change, View } from "../../core/view/view.ts";
import type { FetchNeeds } from "../source/fetch-needs.ts";
import type { TallySource } from "../tallies/tally-collector.ts";
import { describeWrite, type MakeWrite, type WriteResult } from "./planned-writes.ts";
import { Workqueue, type WorkqueueOptions, type WorkResult } from "./workqueue.ts";

/** For all that one key needs to know before it can be planned. Nobody waits for it, so it may be generous. */
const FETCH_MS = 30_000;

export interface ControllerOptions {
  readonly modules: readonly Module[];
  readonly view: () => View;
  /** Without lanes: a plan must rest on what is stored. */
  readonly fetch: FetchNeeds;
  readonly write: MakeWrite;
  /** Asked before every write. */
  readonly leading: () => boolean;
  readonly log: Log;
  readonly tallies?: TallySource;
  /** What reconcilers may ask for what would be decided. */
  readonly assembly?: Assembly;
  /** Told of what reconcilers want people to hear. @default nobody hears it */
  readonly events?: (events: readonly EventToWrite[]) => void;
  /** Given what would be done; nothing is written then. */
  readonly dryRun?: (text: string) => void;
  /** Milliseconds since 1970, for reconcilers. */
  readonly now?: () => number;
  readonly queue?: Omit<WorkqueueOptions, "work">;
}

/**
 * Keeps what modules plan: from changes to keys, from keys to plans, from plans to writes. Runs only where `start` was called, which
 * the leader does; a replica that does not lead drops changes, because whoever begins to lead looks at everything.
 */
export class Controller {
  readonly #options: ControllerOptions;
  readonly #reconcilers: ReadonlyMap<string, Reconciler>;
  /** Why the writes of an item failed the last time. */
  readonly #failures = new Map<string, string>();
  /** By module, resource and result. */
  readonly #writes = new Map<string, PlannedWrites>();
  #queue: Workqueue | undefined;

  constructor(options: ControllerOptions) {
    this.#options = options;
    const reconcilers = new Map<string, Reconciler>();
    for (const { name, reconciler } of options.modules)
      if (reconciler !== undefined) reconcilers.set(name, reconciler);
    this.#reconcilers = reconcilers;
  }

  start(): void {
    if (this.#queue !== undefined) return;
    this.#queue = new Workqueue({ ...this.#options.queue, work: (key) => this.#work(key) });
    const { modules, assembly } = this.#options;
    const view = this.#options.view();
    const others = new Map(this.#reconcilers);
    for (const [module, { all }] of this.#reconcilers) {
      if (all === undefined) continue;
      others.delete(module);
      this.#addAll(module, {}, () => all(view, assembly), UNHURRIED);
    }
    for (const change of everything(modules, view)) this.#take(change, view, others, UNHURRIED);
  }

  /** Resolves when no write is under way any more. */
  async stop(): Promise<void> {
    const queue = this.#queue;
    this.#queue = undefined;
    await queue?.stop();
    this.#failures.clear();
  }

  /** How much there is to do, and what came of what was done. */
  get figures(): ControllerFigures {
    const failing = new Map([...this.#reconcilers.keys()].map((module) => [module, 0]));
    for (const item of this.#failures.keys()) {
      const module = item.slice(0, item.indexOf(" "));
      failing.set(module, (failing.get(module) ?? 0) + 1);
    }
    const items = this.#queue?.size ?? { due: 0, later: 0, running: 0 };
    return { items, failing, writes: [...this.#writes.values()] };
  }

  /** What the view has taken in. */
  changed(changes: Iterable<Change>): void {
    if (this.#queue === undefined) return;
    const view = this.#options.view();
    for (const change of changes) this.#take(change, view, this.#reconcilers);
  }

  /** Policies whose tallies have changed. */
  counted(policies: Iterable<{ readonly module: string; readonly policy: PolicyRef }>): void {
    if (this.#queue === undefined) return;
    const { assembly } = this.#options;
    const view = this.#options.view();
    for (const { module, policy } of policies) {
      const reconciler = this.#reconcilers.get(module);
      if (reconciler === undefined) continue;
      const kinds = this.#options.modules.find(({ name }) => name === module)?.kinds ?? [];
      const kind = kinds.find((one) => one.kind === policy.kind);
      if (kind === undefined) continue;
      const { namespace = "", name } = policy;
      const resource = kindResource(kind);
      const object = view.get(resource, namespace, name);
      if (object === undefined) continue;
      const change: Change = { resource, namespace, name, object };
      const keys = () => reconciler.counted?.(change) ?? reconciler.keys(change, view, assembly);
      this.#addAll(module, { resource, name }, keys);
    }
  }

  #take(change: Change, view: View, reconcilers: ReadonlyMap<string, Reconciler>, add = AT_ONCE): void {
    const { resource, name } = change;
    for (const [module, reconciler] of reconcilers)
      this.#addAll(
        module,
        { resource, name },
        () => reconciler.keys(change, view, this.#options.assembly),
        add,
      );
  }

  #addAll(
    module: string,
    about: Readonly<Record<string, string>>,
    keys: () => Iterable<string>,
    add = AT_ONCE,
  ): void {
    const queue = this.#queue;
    if (queue === undefined) return;
    try {
      for (const key of keys()) add(queue, `${module} ${key}`);
    } catch (error) {
      this.#options.log.warn({ module, ...about, error: why(error) }, BROKE);
    }
  }

  async #work(item: string): Promise<WorkResult> {
    const space = item.indexOf(" ");
    const module = item.slice(0, space);
    const key = item.slice(space + 1);
    const reconciler = this.#reconcilers.get(module);
    if (reconciler === undefined) return { done: true };
    let plan: ReconcileResult;
    try {
      plan = await this.#plan(module, reconciler, key);
    } catch (error) {
      this.#options.log.warn({ module, key, error: why(error) }, BROKE);
      return { retry: true };
    }
    const { dryRun } = this.#options;
    if (dryRun !== undefined) dryRun(describeResult(module, key, plan));
    else if (!(await this.#carryOut(module, reconciler, key, plan))) return { retry: true };
    else this.#options.events?.(plan.events ?? []);
    for (const other of plan.also ?? []) this.#queue?.add(`${module} ${other}`);
    return { done: true, ...(plan.again === undefined ? {} : { afterMs: plan.again * 1_000 }) };
  }

  async #plan(module: string, reconciler: Reconciler, key: string): Promise<ReconcileResult> {
    const facts = new Facts();
    const { now = Date.now, tallies, assembly } = this.#options;
    for (let round = 1; ; round++) {
      // The last time what is missing has failed, as in an evaluation.
      if (round === MAX_ROUNDS) facts.close("too many rounds of questions");
      const context = {
        view: this.#options.view(),
        facts,
        now: now(),
        failure: (other: string) => this.#failures.get(`${module} ${other}`),
        ...(tallies && { tallies }),
        ...(assembly && { assembly }),
      };
      const result = reconciler.plan(key, context);
      if (!("need" in result)) return result;
      if (round >= MAX_ROUNDS) throw new Error("the plan needs more than it was allowed to ask for");
      await this.#fetch(facts, result.need);
    }
  }

  async #fetch(facts: Facts, needs: Parameters<FetchNeeds>[0]): Promise<void> {
    const over = new AbortController();
    const until = performance.now() + FETCH_MS;
    const timer = setTimeout(() => over.abort(), FETCH_MS);
    try {
      const remaining = () => until - performance.now();
      const found = await this.#options.fetch(needs, { signal: over.signal, remaining });
      for (const [i, need] of needs.entries()) facts.set(need, found[i] ?? { failed: "no answer" });
    } finally {
      clearTimeout(timer);
      over.abort();
    }
  }

  /** In order; the first that fails ends it, because those behind may rest on it. */
  async #carryOut(
    module: string,
    reconciler: Reconciler,
    key: string,
    plan: ReconcileResult,
  ): Promise<boolean> {
    const { leading, write, log } = this.#options;
    for (const one of plan.writes) {
      if (!leading()) return false;
      const result = await write(one);
      this.#count(module, one, result);
      const facts = { module, key, write: describeWrite(one) };
      if (result === "done") log.debug(facts, "wrote what was planned");
      else {
        if (result === "conflict") log.debug(facts, "someone else wrote; planning again");
        else {
          log.warn({ ...facts, error: result.failed }, "a planned write failed; trying again later");
          this.#settle(module, reconciler, key, result.failed);
        }
        return false;
      }
    }
    this.#settle(module, reconciler, key, undefined);
    return true;
  }

  #count(module: string, write: PlannedWrite, outcome: WriteResult): void {
    const result = typeof outcome === "string" ? outcome : "failed";
    const resource = resourceOf(write);
    const key = `${module} ${resource} ${result}`;
    const count = (this.#writes.get(key)?.count ?? 0) + 1;
    this.#writes.set(key, { module, resource, result, count });
  }

  /** Remembers whether the writes of an item fail, and lets those look again to whom that makes a difference. */
  #settle(module: string, { settled }: Reconciler, key: string, failed: string | undefined): void {
    const item = `${module} ${key}`;
    if (this.#failures.get(item) === failed) return;
    if (failed === undefined) this.#failures.delete(item);
    else this.#failures.set(item, failed);
    if (settled !== undefined)
      this.#addAll(module, { key }, () => settled(key, this.#options.view(), this.#options.assembly));
  }
}

function resourceOf(write: PlannedWrite): string {
  if ("apply" in write) return stringAt(write.apply, "kind") ?? "";
  return "delete" in write ? write.delete.resource : write.of.resource;
}

const BROKE = "a reconciler broke";

type Add = (queue: Workqueue, item: string) => void;
const AT_ONCE: Add = (queue, item) => queue.add(item);
/** Whoever begins to lead looks at everything, which takes minutes where there is much; what changes meanwhile must not wait for that. */
const UNHURRIED: Add = (queue, item) => queue.addUnhurried(item);

function why(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What a dry run prints. */
export function describeResult(module: string, key: string, { writes, again }: ReconcileResult): string {
  const head = `${module} ${key}: ${writes.length === 0 ? "nothing to do" : ""}`.trimEnd();
  const lines = writes.map((write) => `  ${describeWrite(write)}\n    ${JSON.stringify(write)}`);
  const tail = again === undefined ? [] : [`  again in ${again} s`];
  return [head, ...lines, ...tail].join("\n");
}

/** All that is known, as if it had just come. */
function* everything(modules: readonly Module[], view: View): Iterable<Change> {
  const resources = new Set<string>();
  for (const { kinds, reads } of modules) {
    for (const kind of kinds) resources.add(kindResource(kind));
    for (const read of reads) resources.add(resourceName(read));
  }
  for (const resource of resources) {
    for (const object of view.list(resource)) {
      const name = stringAt(object, "metadata", "name") ?? "";
      yield { resource, namespace: stringAt(object, "metadata", "namespace") ?? "", name, object };
    }
  }
}
