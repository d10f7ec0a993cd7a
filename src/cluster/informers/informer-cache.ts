import { resourceName } from "../../core/decision/request.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { type Declarations, type Read, readsOf } from "../../core/module/module.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { projectorOf } from "../../core/view/projection.ts";
import type { Change } from "../../core/view/view.ts";
import { withoutManagedFields } from "../client/api-response.ts";
import type { Client } from "../client/client.ts";
import { createResources, type ResourceResolver } from "../client/discovery.ts";
import type { ListMemory } from "../client/list-memory.ts";
import { Reflector, type ReflectorStatus } from "./reflector.ts";
import type { ReflectorLimits } from "./reflector-limits.ts";
import { TimeSliceQueue } from "./time-slices.ts";
import { ViewUpdater } from "./view-updater.ts";
import type { Prune } from "./watch-event.ts";

/** Optional resources are awaited for this many failures, about 5 s. */
const OPTIONAL_ATTEMPTS = 3;

const STOPPED = "stopped before all resources were synced";

interface Waiter {
  readonly isDone: () => boolean;
  /** Waits for leader-only resources. */
  readonly leaderOnly: boolean;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export interface InformerCacheOptions {
  readonly client: Client;
  readonly assembly: Assembly;
  readonly log: Log;
  /** @default from the assembly's modules */
  readonly resources?: ResourceResolver;
  /** Which resources come from this cluster. @default all */
  readonly owns?: (resource: string) => boolean;
  /** Called after each apply with the effective changes in kept fields. */
  readonly changed?: (changes: readonly Change[]) => void;
  /** Awaited before the cache is ready, beside its resources. @default nothing */
  readonly prerequisite?: Promise<unknown>;
  /** Counts objects that lists leave out. @default they are not counted */
  readonly lists?: ListMemory;
  readonly limits?: ReflectorLimits;
  readonly random?: () => number;
  readonly now?: () => number;
}

/** The state of one resource, for readiness, metrics and `status`. */
export interface ResourceStatus extends ReflectorStatus {
  readonly resource: string;
  readonly required: boolean;
  readonly leaderOnly: boolean;
  /** Whether its initial list is in the view. */
  readonly synced: boolean;
}

/** Keeps the view of an assembly in sync with a cluster: a reflector per resource. */
export interface InformerCache {
  /** True once all required resources are synced. Stays true: the view survives outages. */
  readonly ready: boolean;
  /** Resolves when ready; rejects when stopped before. */
  readonly waitForSync: () => Promise<void>;
  readonly status: () => readonly ResourceStatus[];
  /**
   * Whether the view has a resource at this resourceVersion or a later one: a controller that wrote it then reads its own
   * write. True for a resource that is not followed, whose view never changes.
   */
  readonly has: (resource: string, version: string) => boolean;
  /** Starts the reflectors of leader-only resources; resolves when they are synced, rejects when leading stops before. */
  readonly startLeading: () => Promise<void>;
  /** Stops those reflectors, and removes their objects from the view. */
  readonly stopLeading: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export function openInformerCache(options: InformerCacheOptions): InformerCache {
  return new ReflectorCache(options);
}

class ReflectorCache implements InformerCache {
  readonly #options: InformerCacheOptions;
  readonly #resources: ResourceResolver;
  readonly #watched: readonly WatchedResource[];
  readonly #timeSlices = new TimeSliceQueue();
  readonly #updater: ViewUpdater;
  readonly #reflectors = new Map<string, Reflector>();
  readonly #synced = new Set<string>();
  #waiters: Waiter[] = [];
  #prepared = false;
  #ready = false;
  #stopped = false;

  constructor(options: InformerCacheOptions) {
    const { assembly, client, owns = () => true } = options;
    this.#options = options;
    this.#prepared = options.prerequisite === undefined;
    const prepared = () => {
      this.#prepared = true;
      this.#notify();
    };
    options.prerequisite?.then(prepared, prepared);
    this.#resources = options.resources ?? createResources(client, assembly.modules);
    this.#watched = watchedResources(assembly).filter(({ resource }) => owns(resource));
    this.#updater = new ViewUpdater({
      assembly,
      timeSlices: this.#timeSlices,
      isServing: () => this.#ready,
      onChange: (changes) => options.changed?.(changes),
      onSync: (resource) => {
        this.#synced.add(resource);
        this.#notify();
      },
    });
    for (const resource of this.#watched) if (!resource.leaderOnly) this.#start(resource);
    this.#notify();
  }

  get ready(): boolean {
    return this.#ready;
  }

  waitForSync = (): Promise<void> => this.#until(() => this.#ready);

  status = (): readonly ResourceStatus[] =>
    this.#watched.flatMap(({ resource, required, leaderOnly }) => {
      const reflector = this.#reflectors.get(resource);
      if (reflector === undefined) return [];
      return [{ resource, required, leaderOnly, synced: this.#synced.has(resource), ...reflector.status }];
    });

  has = (resource: string, version: string): boolean => {
    if (!this.#reflectors.has(resource)) return true;
    const seen = this.#updater.versionOf(resource);
    return seen !== undefined && compareVersions(seen, version) >= 0;
  };

  startLeading = (): Promise<void> => {
    const leaderOnly = this.#watched.filter((resource) => resource.leaderOnly);
    for (const watched of leaderOnly) if (!this.#reflectors.has(watched.resource)) this.#start(watched);
    return this.#until(() => leaderOnly.every((watched) => this.#isSynced(watched)), true);
  };

  stopLeading = async (): Promise<void> => {
    const { assembly } = this.#options;
    this.#rejectWaiters("stopped leading before leader-only resources were synced", true);
    for (const { resource, leaderOnly } of this.#watched) {
      const reflector = leaderOnly ? this.#reflectors.get(resource) : undefined;
      if (reflector === undefined) continue;
      this.#reflectors.delete(resource);
      await reflector.stop();
      this.#synced.delete(resource);
      this.#updater.forget(resource, assembly.view);
    }
    await this.#updater.idle();
  };

  stop = async (): Promise<void> => {
    this.#stopped = true;
    this.#updater.stop();
    this.#rejectWaiters(STOPPED);
    await Promise.all([...this.#reflectors.values()].map((reflector) => reflector.stop()));
  };

  #start({ resource, labelSelector, only, presence, prune }: WatchedResource): void {
    const { client, log, lists, limits, random, now } = this.#options;
    const reflector = new Reflector({
      client,
      resources: this.#resources,
      resource,
      prune,
      timeSlices: this.#timeSlices,
      log,
      onChange: (changes, synced) => this.#updater.add(resource, changes, synced),
      onVersion: (version) => this.#updater.received(resource, version),
      onLeftOut: (object) => lists?.leftOut(resource, object),
      onStatus: () => this.#notify(),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(only === undefined ? {} : { only }),
      ...(presence === undefined ? {} : { presence }),
      ...(limits === undefined ? {} : { limits }),
      ...(random === undefined ? {} : { random }),
      ...(now === undefined ? {} : { now }),
    });
    this.#reflectors.set(resource, reflector);
    reflector.start();
  }

  /** Whether it is synced, or optional and unavailable. */
  #isSynced({ resource, required }: WatchedResource): boolean {
    if (this.#synced.has(resource)) return true;
    const status = this.#reflectors.get(resource)?.status;
    return (
      !required && status !== undefined && (status.served === false || status.errors >= OPTIONAL_ATTEMPTS)
    );
  }

  #notify(): void {
    if (this.#stopped) return;
    this.#ready ||=
      this.#prepared && this.#watched.every((watched) => watched.leaderOnly || this.#isSynced(watched));
    const done = this.#waiters.filter((waiter) => waiter.isDone());
    this.#waiters = this.#waiters.filter((waiter) => !done.includes(waiter));
    for (const { resolve } of done) resolve();
  }

  #until(isDone: () => boolean, leaderOnly = false): Promise<void> {
    if (isDone()) return Promise.resolve();
    if (this.#stopped) return Promise.reject(new Error(STOPPED));
    return new Promise((resolve, reject) => this.#waiters.push({ isDone, leaderOnly, resolve, reject }));
  }

  #rejectWaiters(why: string, leaderOnly = false): void {
    const rejected = this.#waiters.filter((waiter) => waiter.leaderOnly || !leaderOnly);
    this.#waiters = this.#waiters.filter((waiter) => !rejected.includes(waiter));
    for (const { reject } of rejected) reject(new Error(why));
  }
}

/**
 * The order of resourceVersions of one resource, which Kubernetes guarantees to be integers that grow (KEP-5504). Other
 * texts, as an extension API server may have, count as reached.
 */
function compareVersions(seen: string, wanted: string): number {
  if (!/^\d+$/.test(seen) || !/^\d+$/.test(wanted)) return 0;
  return seen.length === wanted.length
    ? seen < wanted
      ? -1
      : seen > wanted
        ? 1
        : 0
    : seen.length - wanted.length;
}

/** A resource that modules read, over all modules. */
interface WatchedResource {
  readonly resource: string;
  /** Whether a module can't work without it. */
  readonly required: boolean;
  readonly leaderOnly: boolean;
  readonly labelSelector?: string;
  readonly only?: { readonly name: string };
  /** No module reads its objects. */
  readonly presence?: boolean;
  readonly prune: Prune;
}

/** The resources that modules read from the API server, each once. */
export function watchedResources(declarations: Declarations): WatchedResource[] {
  const watched = new Map<string, WatchedResource>();
  const reads = Map.groupBy(readsOf(declarations), resourceName);
  for (const [resource, all] of reads) watched.set(resource, merged(resource, all));
  for (const kind of declarations.modules.flatMap(({ kinds }) => kinds)) {
    // Kinds of files are not in the API server. All fields of other kinds are kept, regardless of modules' reads.
    if (kind.standing === "file") continue;
    const resource = kindResource(kind);
    // If the CRD is registered only at times, the kind may not be served.
    const required = kind.registered === undefined;
    watched.set(resource, { resource, required, leaderOnly: false, prune: withoutManagedFields });
  }
  return [...watched.values()];
}

function merged(resource: string, reads: readonly Read[]): WatchedResource {
  const selectors = new Set(reads.map(({ labelSelector }) => labelSelector ?? ""));
  const [selector = ""] = selectors;
  const names = new Set(reads.map(({ name }) => name));
  const [name] = names;
  return {
    resource,
    required: reads.some(({ optional }) => optional !== true),
    leaderOnly: reads.every(({ leaderOnly }) => leaderOnly === true),
    // If selectors differ, everything is read, so that each module sees its part.
    ...(selectors.size === 1 && selector !== "" ? { labelSelector: selector } : {}),
    ...(names.size === 1 && name !== undefined ? { only: { name } } : {}),
    ...(reads.every(({ presence }) => presence === true) ? { presence: true } : {}),
    prune: projectorOf(reads),
  };
}
