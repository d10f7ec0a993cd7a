import { type Fact, Facts, type Need } from "../../src/core/decision/need.ts";
import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import type { Json, JsonObject } from "../../src/core/json.ts";
import type { Module } from "../../src/core/module/module.ts";
import { keyIdentity, type ReconcileKey } from "../../src/core/module/reconciler.ts";
import type { Change } from "../../src/core/view/view.ts";
import { assemblyOf, callOf } from "./evaluation.ts";
import { again } from "./json.ts";
import { outside } from "./outside.ts";

/** One event in a cluster: an object changes, or an admission request arrives. */
export type Step = { readonly change: Change } | { readonly request: AdmissionRequest };

export interface HistoryOptions {
  /** Stored workloads, by resource. */
  readonly workloads?: Readonly<Record<string, readonly JsonObject[]>>;
  /** Called with the state before each use; its return value replaces the state. @default the same state */
  readonly refresh?: (state: unknown) => unknown;
  /** Whether each request is evaluated by a new assembly, built from all objects. */
  readonly assembleAnew?: boolean;
}

/** More steps than any history of a test takes; a queue that never drains fails. */
const MOST_ITEMS = 10_000;

/**
 * One cluster with its own assembly and reconciler state. Other clusters may use the same module at the same time.
 * Records all results.
 */
export class History {
  readonly results: Json[] = [];
  readonly #module: Module;
  readonly #options: HistoryOptions;
  readonly #assembly;
  readonly #objects = new Map<string, Change>();
  /** Requeued keys by identity, with the time at which they are due. */
  readonly #delayed = new Map<string, { readonly key: ReconcileKey; readonly at: number }>();
  #state: unknown;
  #now = 1_700_000_000_000;

  constructor(module: Module, options: HistoryOptions = {}) {
    this.#module = module;
    this.#options = options;
    this.#assembly = assemblyOf([module]);
    this.#state = module.reconciler?.initialState();
    this.#reconcileAll([...(module.reconciler?.initialKeys?.(this.#state, this.#context()) ?? [])]);
  }

  /** Advances the clock by some seconds, runs the keys that become due, and then takes one step. */
  async step(step: Step): Promise<void> {
    this.#pass(7_000);
    if ("request" in step) {
      for (const phase of ["mutate", "validate"] as const) await this.#evaluate(step.request, phase);
      return;
    }
    const { resource, namespace, name } = step.change;
    this.#objects.set(`${resource} ${namespace}/${name}`, step.change);
    const [real] = this.#assembly.apply([again(step.change as unknown as JsonObject) as unknown as Change]);
    if (real === undefined) return;
    this.#refresh();
    this.#reconcileAll([...(this.#module.reconciler?.keys(real, this.#state, this.#context()) ?? [])]);
  }

  #pass(ms: number): void {
    const end = this.#now + ms;
    for (let items = 0; items < MOST_ITEMS; items++) {
      const [next] = [...this.#delayed].sort(([, a], [, b]) => a.at - b.at);
      if (next === undefined || next[1].at > end) break;
      const [id, { key, at }] = next;
      this.#delayed.delete(id);
      this.#now = Math.max(this.#now, at);
      this.#reconcileAll([key]);
    }
    this.#now = end;
  }

  async #evaluate(request: AdmissionRequest, phase: "mutate" | "validate"): Promise<void> {
    const assembly =
      this.#options.assembleAnew === true
        ? assemblyOf([this.#module], [...this.#objects.values()])
        : this.#assembly;
    const call = callOf(assembly, again(request as unknown as JsonObject) as unknown as AdmissionRequest, {
      phase,
      now: this.#now,
    });
    this.#record(responseOf(await evaluate(call, outside())));
  }

  #reconcileAll(first: readonly ReconcileKey[]): void {
    const queue = new Map(first.map((key) => [keyIdentity(key), key]));
    let items = 0;
    for (const [id, key] of queue) {
      if (++items > MOST_ITEMS) throw new Error("the queue does not drain");
      queue.delete(id);
      this.#delayed.delete(id);
      for (const next of this.#reconcile(key)) queue.set(keyIdentity(next), next);
    }
  }

  #reconcile(key: ReconcileKey): readonly ReconcileKey[] {
    const facts = new Facts();
    for (;;) {
      this.#refresh();
      const result = this.#module.reconciler?.reconcile(key, this.#state, {
        ...this.#context(),
        facts,
        now: this.#now,
      });
      if (result === undefined) return [];
      this.#record([key, result]);
      if (!("need" in result)) {
        const { requeueAfter, enqueue = [] } = result;
        if (requeueAfter !== undefined)
          this.#delayed.set(keyIdentity(key), { key, at: this.#now + requeueAfter * 1_000 });
        return enqueue;
      }
      for (const need of result.need) facts.set(need, this.#fact(need));
    }
  }

  #fact(need: Need): Fact {
    if ("get" in need) {
      const { resource, namespace = "", name } = need.get;
      const found = this.#assembly.view.get(resource, namespace, name);
      if (found === undefined) return { absent: "NotFound" };
      const metadata = { ...(found["metadata"] as JsonObject), resourceVersion: "1" };
      return { found: { ...again(found), metadata }, complete: true };
    }
    if (!("list" in need)) return { failed: "not expected" };
    return { found: again((this.#options.workloads?.[need.list.resource] ?? []) as Json[]), complete: true };
  }

  #refresh(): void {
    this.#state = this.#options.refresh?.(this.#state) ?? this.#state;
  }

  #context() {
    return { view: this.#assembly.view, assembly: this.#assembly };
  }

  #record(result: unknown): void {
    this.results.push(again(result as JsonObject));
  }
}
