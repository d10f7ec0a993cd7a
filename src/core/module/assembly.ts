import { resourceName } from "../decision/request.ts";
import type { Gates } from "../installation/gates.ts";
import type { Installation } from "../installation/installation.ts";
import type { JsonObject } from "../json.ts";
import { type ServerVersion, sameServerVersion } from "../kubernetes/versions.ts";
import { versionOf } from "../policy/check.ts";
import { type Kind, kindResource, type Prepared } from "../policy/kind.ts";
import { type PolicyRef, refOf } from "../policy/policy-ref.ts";
import { problem } from "../policy/problem.ts";
import { projectorOf, withoutBookkeeping } from "../view/projection.ts";
import { Store } from "../view/store.ts";
import { type Change, type Index, objectKey, type View } from "../view/view.ts";
import type { Hook } from "./hook.ts";
import type { Evaluator, Module } from "./module.ts";
import { safeguard } from "./safeguard.ts";

/** A policy in its current state: its prepared form, and its problems. */
export interface StandingPolicy extends Prepared {
  readonly ref: PolicyRef;
  readonly module: string;
}

/** The removed and added policies of a module in one step. A policy that was added and removed within it is in neither. */
interface Turnover {
  readonly removed: Set<unknown>;
  readonly added: Set<unknown>;
}

interface Owner {
  readonly module: Module;
  readonly kind: Kind;
}

/**
 * The modules with their state: a view, the prepared policies, and the evaluators built from them. It changes between
 * evaluations, never during one: `apply` is synchronous, and so is an evaluation until it needs something.
 */
export class Assembly {
  readonly modules: readonly Module[];
  readonly installation: Installation;
  readonly gates: Gates;
  readonly #store: Store;
  readonly #owners: ReadonlyMap<string, Owner>;
  readonly #keeps: ReadonlyMap<string, (object: JsonObject) => JsonObject>;
  /** The modules whose kinds or reads a resource is. */
  readonly #readers: ReadonlyMap<string, readonly Module[]>;
  readonly #policies: Map<string, Map<string, StandingPolicy>>;
  readonly #evaluators: Map<string, Evaluator>;
  /** Evaluators that no other assembly shares, and that may therefore be updated in place. */
  readonly #unshared = new Set<string>();
  /** The declared hooks of each module, until a resource changes that the module reads. */
  readonly #declared = new Map<string, readonly Hook[]>();
  #hooks: readonly Hook[] | undefined;

  constructor(
    modules: readonly Module[],
    installation: Installation,
    gates: Gates,
    from?: Assembly,
    store?: Store,
  ) {
    this.modules = modules;
    this.installation = installation;
    this.gates = gates;
    this.#owners = from === undefined ? ownersOf(modules) : from.#owners;
    this.#keeps = from === undefined ? keepsOf(modules) : from.#keeps;
    this.#readers = from === undefined ? readersOf(modules) : from.#readers;
    this.#store = store ?? new Store(indexesOf(modules));
    if (from === undefined) this.#store.serverVersion = installation.kubernetesVersion;
    this.#policies = new Map();
    for (const { name } of modules) {
      this.#policies.set(name, new Map(from === undefined ? [] : from.#policies.get(name)));
    }
    this.#evaluators = new Map(from === undefined ? [] : from.#evaluators);
    if (from === undefined) for (const module of modules) this.#assemble(module);
  }

  get view(): View {
    return this.#store;
  }

  /** The declared hooks of the modules, in order. */
  get declaredHooks(): readonly Hook[] {
    return this.modules.flatMap((module) => {
      const known = this.#declared.get(module.name);
      if (known !== undefined) return known;
      const hooks = module.hooks(this.#usable(module), this.#store, this.installation, this.gates);
      this.#declared.set(module.name, hooks);
      return hooks;
    });
  }

  /** The hooks to register and to run: as declared, except that none can lock the cluster. */
  get hooks(): readonly Hook[] {
    this.#hooks ??= safeguard(this.declaredHooks, this.installation).hooks;
    return this.#hooks;
  }

  evaluator(module: string): Evaluator | undefined {
    return this.#evaluators.get(module);
  }

  /** Which resources are worth bringing to `apply`. */
  wants(resource: string): boolean {
    return this.#owners.has(resource) || this.#keeps.has(resource);
  }

  /** Records that the source has a resource, even an empty one. */
  serve(resource: string): void {
    this.#store.serve(resource);
    this.#forgetHooks(this.modules);
  }

  /** Sets the API server's version, and returns whether it is another one than before. */
  observeServerVersion(version: ServerVersion): boolean {
    if (sameServerVersion(version, this.#store.serverVersion)) return false;
    this.#store.serverVersion = version;
    this.#forgetHooks(this.modules);
    return true;
  }

  policies(module: string): Iterable<StandingPolicy> {
    return this.#policies.get(module)?.values() ?? [];
  }

  /** Applies changes, and returns the effective ones in kept fields. */
  apply(changes: readonly Change[]): Change[] {
    const kept: Change[] = [];
    for (const change of changes) {
      if (this.wants(change.resource)) kept.push({ ...change, object: this.#project(change) });
    }
    const real = this.#store.apply(kept);
    const turnovers = new Map<Module, Turnover>();
    for (const change of real) {
      const owner = this.#owners.get(change.resource);
      if (owner === undefined) continue;
      const turnover = turnovers.get(owner.module) ?? { removed: new Set(), added: new Set() };
      turnovers.set(owner.module, turnover);
      this.#prepare(owner, change, turnover);
    }
    for (const [module, turnover] of turnovers) this.#renew(module, turnover);
    for (const resource of new Set(real.map((change) => change.resource)))
      this.#forgetHooks(this.#readers.get(resource) ?? []);
    return real;
  }

  /** A copy with these changes supposed. */
  with(changes: readonly Change[]): Assembly {
    const store = this.#store.fork(new Set(changes.map(({ resource }) => resource)));
    const supposed = new Assembly(this.modules, this.installation, this.gates, this, store);
    // From here on both use the same evaluators: neither may change them in place.
    this.#unshared.clear();
    supposed.apply(changes);
    return supposed;
  }

  #prepare({ module, kind }: Owner, change: Change, turnover: Turnover): void {
    const policies = this.#policies.get(module.name);
    const key = `${change.resource} ${objectKey(change.namespace, change.name)}`;
    const before = policies?.get(key)?.policy;
    if (before !== undefined && !turnover.added.delete(before)) turnover.removed.add(before);
    if (change.object === undefined) {
      policies?.delete(key);
      return;
    }
    const ref = refOf(kind, change.object);
    const prepared = preparedOf(kind, change.object, ref);
    if (prepared.policy !== undefined) turnover.added.add(prepared.policy);
    policies?.set(key, { ...prepared, ref, module: module.name });
  }

  #renew(module: Module, { removed, added }: Turnover): void {
    const update = this.#unshared.has(module.name) ? this.#evaluators.get(module.name)?.update : undefined;
    const total = this.#policies.get(module.name)?.size ?? 0;
    // When much changes at once (at the start everything does), building a new index is cheaper and gives better
    // positions.
    if (update === undefined || added.size + removed.size > total / 4) this.#assemble(module);
    else update([...removed], [...added]);
  }

  #forgetHooks(modules: readonly Module[]): void {
    for (const { name } of modules) this.#declared.delete(name);
    if (modules.length > 0) this.#hooks = undefined;
  }

  #usable(module: Module): unknown[] {
    const usable: unknown[] = [];
    for (const { policy } of this.#policies.get(module.name)?.values() ?? []) {
      if (policy !== undefined) usable.push(policy);
    }
    return usable;
  }

  #assemble(module: Module): void {
    const usable = this.#usable(module);
    this.#evaluators.set(module.name, module.assemble(usable, this.installation, this.gates));
    this.#unshared.add(module.name);
  }

  #project(change: Change): JsonObject | undefined {
    const { object } = change;
    if (object === undefined) return undefined;
    const keep = this.#keeps.get(change.resource);
    return keep === undefined || this.#owners.has(change.resource)
      ? withoutBookkeeping(object)
      : keep(object);
  }
}

/** By contract neither step throws. If one still does, it must affect only its own policy, not later ones. */
function preparedOf(kind: Kind, object: JsonObject, ref: PolicyRef): Prepared {
  try {
    return kind.prepare(versionOf(kind, object)?.upgrade?.(object) ?? object, ref);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return {
      policy: undefined,
      problems: [problem([], `can't be read because of a fault in usher: ${why}`)],
    };
  }
}

function ownersOf(modules: readonly Module[]): Map<string, Owner> {
  const owners = new Map<string, Owner>();
  for (const module of modules) {
    for (const kind of module.kinds) owners.set(kindResource(kind), { module, kind });
  }
  return owners;
}

function readersOf(modules: readonly Module[]): Map<string, readonly Module[]> {
  const readers = new Map<string, readonly Module[]>();
  for (const module of modules) {
    for (const name of new Set([...module.kinds.map(kindResource), ...module.reads.map(resourceName)]))
      readers.set(name, [...(readers.get(name) ?? []), module]);
  }
  return readers;
}

function keepsOf(modules: readonly Module[]): Map<string, (object: JsonObject) => JsonObject> {
  const reads = Map.groupBy(
    modules.flatMap((module) => module.reads),
    resourceName,
  );
  return new Map([...reads].map(([name, all]) => [name, projectorOf(all)]));
}

function indexesOf(modules: readonly Module[]): Map<string, readonly Index[]> {
  const indexes = new Map<string, readonly Index[]>();
  for (const { reads } of modules) {
    for (const read of reads) {
      const name = resourceName(read);
      if (read.indexes !== undefined) indexes.set(name, [...(indexes.get(name) ?? []), ...read.indexes]);
    }
  }
  return indexes;
}
