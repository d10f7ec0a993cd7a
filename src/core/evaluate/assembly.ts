import { at, type JsonObject, stringAt } from "../json.ts";
import { type ServerVersion, sameServerVersion } from "../kubernetes/versions.ts";
import type { Gates } from "../module/gates.ts";
import type { Hook } from "../module/hook.ts";
import type { Installation } from "../module/installation.ts";
import type { Evaluator, Module } from "../module/module.ts";
import type { Path } from "../path.ts";
import { versionOf } from "../policy/check.ts";
import { type Kind, kindResource, type Prepared } from "../policy/kind.ts";
import { problem } from "../policy/problem.ts";
import { safeguard } from "../registration/safeguard.ts";
import { project, withoutBookkeeping } from "../view/projection.ts";
import { Store } from "../view/store.ts";
import { type Change, type Index, objectKey, type View } from "../view/view.ts";
import type { PolicyRef } from "./finding.ts";
import { resourceName } from "./request.ts";

/** A policy as it stands: what it became, and what is wrong with it. */
export interface StandingPolicy extends Prepared {
  readonly ref: PolicyRef;
  readonly module: string;
}

/** What of a module's policies went and came in one step. What came and went again within it is in neither. */
interface Turnover {
  readonly removed: Set<unknown>;
  readonly added: Set<unknown>;
}

interface Owner {
  readonly module: Module;
  readonly kind: Kind;
}

/**
 * The modules together with what they know: a view, the prepared policies, and the evaluators made from them. It changes
 * between evaluations, never during one: `apply` is synchronous, and so is an evaluation until it needs something.
 */
export class Assembly {
  readonly modules: readonly Module[];
  readonly installation: Installation;
  readonly gates: Gates;
  readonly #store: Store;
  readonly #owners: ReadonlyMap<string, Owner>;
  readonly #keeps: ReadonlyMap<string, readonly Path[]>;
  readonly #policies = new Map<string, Map<string, StandingPolicy>>();
  readonly #evaluators = new Map<string, Evaluator>();
  #hooks: readonly Hook[] | undefined;

  constructor(modules: readonly Module[], installation: Installation, gates: Gates) {
    this.modules = modules;
    this.installation = installation;
    this.gates = gates;
    this.#owners = ownersOf(modules);
    this.#keeps = keepsOf(modules);
    this.#store = new Store(indexesOf(modules));
    this.#store.serverVersion = installation.kubernetesVersion;
    for (const module of modules) {
      this.#policies.set(module.name, new Map());
      this.#assemble(module);
    }
  }

  get view(): View {
    return this.#store;
  }

  /** What the modules ask for, in their order. */
  get declaredHooks(): readonly Hook[] {
    return this.modules.flatMap((module) => module.hooks(this.#store, this.installation, this.gates));
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

  /** Says that the source has a resource, even an empty one. */
  serve(resource: string): void {
    this.#store.serve(resource);
  }

  /** Sets the API server's version, and returns whether it is another one than before. */
  observeServerVersion(version: ServerVersion): boolean {
    if (sameServerVersion(version, this.#store.serverVersion)) return false;
    this.#store.serverVersion = version;
    this.#hooks = undefined;
    return true;
  }

  policies(module: string): Iterable<StandingPolicy> {
    return this.#policies.get(module)?.values() ?? [];
  }

  /** Takes in what changed, and says what of it was a real change to something that we keep. */
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
    if (real.length > 0) this.#hooks = undefined;
    return real;
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
    const update = this.#evaluators.get(module.name)?.update;
    const total = this.#policies.get(module.name)?.size ?? 0;
    // When much changes at once (at the start everything does), indexing again is cheaper and finds better places.
    if (update === undefined || added.size + removed.size > total / 4) this.#assemble(module);
    else update([...removed], [...added]);
  }

  #assemble(module: Module): void {
    const usable: unknown[] = [];
    for (const { policy } of this.#policies.get(module.name)?.values() ?? []) {
      if (policy !== undefined) usable.push(policy);
    }
    this.#evaluators.set(module.name, module.assemble(usable, this.installation, this.gates));
  }

  #project(change: Change): JsonObject | undefined {
    const { object } = change;
    if (object === undefined) return undefined;
    const keep = this.#keeps.get(change.resource);
    return keep === undefined || this.#owners.has(change.resource)
      ? withoutBookkeeping(object)
      : project(object, keep);
  }
}

/** By contract neither step throws. One that does all the same must cost its own policy only, not all that come after it. */
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

/** How findings name a policy. */
export function refOf(kind: Kind, object: JsonObject): PolicyRef {
  const namespace = stringAt(object, "metadata", "namespace");
  const uid = stringAt(object, "metadata", "uid");
  const generation = at(object, "metadata", "generation");
  return {
    kind: kind.kind,
    name: stringAt(object, "metadata", "name") ?? "",
    ...(kind.scope === "Namespaced" ? { namespace: namespace ?? "default" } : {}),
    ...(uid === undefined ? {} : { uid }),
    ...(typeof generation === "number" ? { generation } : {}),
  };
}

function ownersOf(modules: readonly Module[]): Map<string, Owner> {
  const owners = new Map<string, Owner>();
  for (const module of modules) {
    for (const kind of module.kinds) owners.set(kindResource(kind), { module, kind });
  }
  return owners;
}

function keepsOf(modules: readonly Module[]): Map<string, readonly Path[]> {
  const keeps = new Map<string, readonly Path[]>();
  for (const { reads } of modules) {
    for (const read of reads) {
      const name = resourceName(read);
      keeps.set(name, [...(keeps.get(name) ?? []), ...read.keep]);
    }
  }
  return keeps;
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
