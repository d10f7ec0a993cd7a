import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { Log } from "../../core/log.ts";
import type { Change } from "../../core/view/view.ts";
import type { Client } from "../client/client.ts";
import { createResources, type ResourceResolver } from "../client/discovery.ts";
import { Reflector, type ReflectorStatus } from "./reflector.ts";
import type { ReflectorLimits } from "./reflector-limits.ts";
import { TimeSliceQueue } from "./time-slices.ts";
import { ViewUpdater } from "./view-updater.ts";
import { type WatchedResource, watchedResources } from "./watched-resources.ts";

/** What may be missing is not waited for longer than this many failures: some 5 s of them. */
const OPTIONAL_ATTEMPTS = 3;

export interface InformerCacheOptions {
  readonly client: Client;
  readonly assembly: Assembly;
  readonly log: Log;
  /** @default made from the assembly's modules */
  readonly resources?: ResourceResolver;
  /** Which resources come from this cluster. @default all */
  readonly owns?: (resource: string) => boolean;
  /** Told, after each apply, of what really changed in something that we keep. */
  readonly changed?: (changes: readonly Change[]) => void;
  /** Waited for before the cache is ready, beside what it reads. @default nothing */
  readonly prerequisite?: Promise<unknown>;
  readonly limits?: ReflectorLimits;
  readonly random?: () => number;
  readonly now?: () => number;
}

/** How one resource of the view stands: for readiness, for metrics, for people. */
export interface ResourceStatus extends ReflectorStatus {
  readonly resource: string;
  readonly required: boolean;
  readonly leaderOnly: boolean;
  /** Whether everything that exists of it has been in the view at least once. */
  readonly synced: boolean;
}

/** A view of a cluster that follows it. */
export interface InformerCache {
  /** True once everything that modules can't do without has been read. It stays so: what is known stays known through an outage. */
  readonly ready: boolean;
  /** Is fulfilled when it is ready; rejected when it is stopped before. */
  readonly waitForSync: () => Promise<void>;
  readonly status: () => readonly ResourceStatus[];
  /** Begins to read what only a leader needs, and is done when that is read. */
  readonly startLeading: () => Promise<void>;
  /** Ends reading it, and forgets it. */
  readonly stopLeading: () => Promise<void>;
  /** Is done when everything that has arrived is in the view. */
  readonly idle: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

export function openInformerCache(options: InformerCacheOptions): InformerCache {
  return new Live(options);
}

class Live implements InformerCache {
  readonly #options: InformerCacheOptions;
  readonly #resources: ResourceResolver;
  readonly #wanted: readonly WatchedResource[];
  readonly #turns = new TimeSliceQueue();
  readonly #intake: ViewUpdater;
  readonly #reflectors = new Map<string, Reflector>();
  readonly #synced = new Set<string>();
  #waiting: { readonly done: () => boolean; readonly end: (error?: Error) => void }[] = [];
  #prepared = false;
  #ready = false;
  #stopped = false;

  constructor(options: InformerCacheOptions) {
    const { assembly, client, owns = () => true } = options;
    this.#options = options;
    this.#prepared = options.prerequisite === undefined;
    void options.prerequisite?.finally(() => {
      this.#prepared = true;
      this.#look();
    });
    this.#resources = options.resources ?? createResources(client, assembly.modules);
    this.#wanted = watchedResources(assembly.modules).filter(({ resource }) => owns(resource));
    this.#intake = new ViewUpdater({
      assembly,
      turns: this.#turns,
      inForce: () => this.#ready,
      changed: (changes) => options.changed?.(changes),
      synced: (resource) => {
        this.#synced.add(resource);
        this.#look();
      },
    });
    for (const wanted of this.#wanted) if (!wanted.leaderOnly) this.#start(wanted);
    this.#look();
  }

  get ready(): boolean {
    return this.#ready;
  }

  waitForSync = (): Promise<void> => this.#until(() => this.#ready);

  status = (): readonly ResourceStatus[] =>
    this.#wanted.flatMap(({ resource, required, leaderOnly }) => {
      const reflector = this.#reflectors.get(resource);
      if (reflector === undefined) return [];
      return [{ resource, required, leaderOnly, synced: this.#synced.has(resource), ...reflector.status }];
    });

  startLeading = (): Promise<void> => {
    const only = this.#wanted.filter(({ leaderOnly }) => leaderOnly);
    for (const wanted of only) if (!this.#reflectors.has(wanted.resource)) this.#start(wanted);
    return this.#until(() => only.every((wanted) => this.#settled(wanted)));
  };

  stopLeading = async (): Promise<void> => {
    const { assembly } = this.#options;
    for (const { resource, leaderOnly } of this.#wanted) {
      const reflector = leaderOnly ? this.#reflectors.get(resource) : undefined;
      if (reflector === undefined) continue;
      this.#reflectors.delete(resource);
      await reflector.stop();
      this.#synced.delete(resource);
      this.#intake.forget(resource, assembly.view);
    }
    await this.#intake.idle();
  };

  idle = (): Promise<void> => this.#intake.idle();

  stop = async (): Promise<void> => {
    this.#stopped = true;
    this.#intake.stop();
    for (const { end } of this.#waiting) end(new Error("stopped before everything was read"));
    this.#waiting = [];
    await Promise.all([...this.#reflectors.values()].map((reflector) => reflector.stop()));
  };

  #start({ resource, labelSelector, prune }: WatchedResource): void {
    const { client, log, limits, random, now } = this.#options;
    const reflector = new Reflector({
      client,
      resources: this.#resources,
      resource,
      prune,
      turns: this.#turns,
      log,
      tell: (changes, synced) => this.#intake.add(resource, changes, synced),
      noted: () => this.#look(),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(limits === undefined ? {} : { limits }),
      ...(random === undefined ? {} : { random }),
      ...(now === undefined ? {} : { now }),
    });
    this.#reflectors.set(resource, reflector);
    reflector.start();
  }

  /** Whether nothing more is to be waited for. */
  #settled({ resource, required }: WatchedResource): boolean {
    if (this.#synced.has(resource)) return true;
    const status = this.#reflectors.get(resource)?.status;
    return (
      !required && status !== undefined && (status.served === false || status.errors >= OPTIONAL_ATTEMPTS)
    );
  }

  #look(): void {
    if (this.#stopped) return;
    this.#ready ||=
      this.#prepared && this.#wanted.every((wanted) => wanted.leaderOnly || this.#settled(wanted));
    const done = this.#waiting.filter((one) => one.done());
    this.#waiting = this.#waiting.filter((one) => !done.includes(one));
    for (const { end } of done) end();
  }

  #until(done: () => boolean): Promise<void> {
    if (done()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const end = (error?: Error): void => (error === undefined ? resolve() : reject(error));
      if (this.#stopped) end(new Error("stopped before everything was read"));
      else this.#waiting.push({ done, end });
    });
  }
}
