import { equal } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import type { TimeSlices } from "../../core/time-slices.ts";
import { type Change, objectKey, type View } from "../../core/view/view.ts";
import type { ReceivedObject } from "./reflector-steps.ts";
import { slicesFrom, type TimeSliceQueue } from "./time-slices.ts";

/** Far below a time slice, yet large enough to spread the fixed cost of an apply. */
const BATCH_SIZE = 50;

type Entry =
  | {
      readonly changes: readonly Change[];
      /** With these changes the view has each resource at this resourceVersion. */
      readonly versions: Map<string, string>;
    }
  /** All changes of this resource's initial list are before this entry. */
  | { readonly synced: string };

interface ViewUpdaterOptions {
  readonly assembly: Assembly;
  readonly timeSlices: TimeSliceQueue;
  /** Whether the view already serves evaluations. */
  readonly isServing: () => boolean;
  /** Called with the changes that were effective. */
  readonly onChange: (changes: readonly Change[]) => void;
  /** Called when the initial list of a resource is in the view. */
  readonly onSync: (resource: string) => void;
}

/** Applies changes to the assembly in order and in small batches, so that requests are served in between. */
export class ViewUpdater {
  readonly #options: ViewUpdaterOptions;
  readonly #slices: TimeSlices;
  /** Changes of resources whose initial list is incomplete. The view counts a resource as served from its first object on. */
  readonly #pending = new Map<string, Map<string, Change>>();
  readonly #complete = new Set<string>();
  readonly #versions = new Map<string, string>();
  #queue: Entry[] = [];
  #lastBatch: Change[] = [];
  #running: Promise<void> | undefined;
  #stopped = false;

  constructor(options: ViewUpdaterOptions) {
    this.#options = options;
    this.#slices = slicesFrom(options.timeSlices);
  }

  add(resource: string, changes: readonly Change[], synced: boolean): void {
    if (!this.#complete.has(resource)) {
      const pending = this.#pending.get(resource) ?? new Map<string, Change>();
      // By object: an initial list that breaks repeatedly delivers the same objects repeatedly.
      for (const change of changes) pending.set(objectKey(change.namespace, change.name), change);
      this.#pending.set(resource, pending);
      if (!synced) return;
      this.#pending.delete(resource);
      this.#complete.add(resource);
      const all = [...pending.values()];
      // In one batch while evaluations run: half of the policies of a new kind would decide wrongly.
      if (this.#options.isServing()) this.#pushChanges(all);
      else
        for (let from = 0; from < all.length; from += BATCH_SIZE)
          this.#pushChanges(all.slice(from, from + BATCH_SIZE));
    } else {
      const changed = changes.filter((change) => !this.#isUnchanged(change));
      if (changed.length > 0) this.#append(changed);
    }
    if (synced) this.#push({ synced: resource });
  }

  /** Everything that was added for a resource until now adds up to this resourceVersion. */
  received(resource: string, version: string): void {
    const last = this.#queue.at(-1);
    if (last !== undefined && "changes" in last) last.versions.set(resource, version);
    else if (this.#running === undefined) this.#versions.set(resource, version);
    else this.#push({ changes: [], versions: new Map([[resource, version]]) });
  }

  /** The resourceVersion of a resource in the view. `undefined` before its first list. */
  versionOf(resource: string): string | undefined {
    return this.#versions.get(resource);
  }

  /** Removes a resource from the view; its next changes wait until they are complete again. */
  forget(resource: string, view: View): void {
    this.#pending.delete(resource);
    this.#complete.delete(resource);
    // Queued changes would otherwise reach the view after the removal, and stay.
    this.#queue = this.#queue.flatMap((entry) => without(entry, resource));
    this.#lastBatch = [];
    this.#versions.delete(resource);
    const removed: Change[] = [];
    for (const object of view.list(resource)) {
      removed.push({ resource, namespace: namespaceOf(object), name: nameOf(object), object: undefined });
    }
    if (removed.length > 0) this.#pushChanges(removed);
  }

  /** Resolves when everything received so far is in the view. */
  async idle(): Promise<void> {
    await this.#running;
  }

  stop(): void {
    this.#stopped = true;
    this.#queue = [];
  }

  /**
   * Whether the view has the object unchanged: most node events are heartbeats, which change no kept field. Only valid
   * while the queue is empty, because a queued change may be about the same object.
   */
  #isUnchanged({ resource, namespace, name, object }: Change): boolean {
    if (this.#running !== undefined || object === undefined) return false;
    return equal(this.#options.assembly.view.get(resource, namespace, name), object);
  }

  /** Events arrive one by one; queued ones are applied together. */
  #append(changes: readonly Change[]): void {
    const last = this.#queue.at(-1);
    if (
      last !== undefined &&
      "changes" in last &&
      last.changes === this.#lastBatch &&
      this.#lastBatch.length < BATCH_SIZE
    ) {
      for (const change of changes) this.#lastBatch.push(change);
      return;
    }
    this.#lastBatch = [...changes];
    this.#pushChanges(this.#lastBatch);
  }

  #pushChanges(changes: readonly Change[]): void {
    this.#push({ changes, versions: new Map() });
  }

  #push(entry: Entry): void {
    this.#queue.push(entry);
    this.#running ??= this.#run();
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#slices.next();
      const entry = this.#queue.shift();
      if (entry === undefined || this.#stopped) {
        // Synchronously, not when the promise resolves: a change in between must start a new run.
        this.#running = undefined;
        return;
      }
      if ("changes" in entry) {
        const effective = this.#options.assembly.apply(entry.changes);
        for (const [resource, version] of entry.versions) this.#versions.set(resource, version);
        if (effective.length > 0) this.#options.onChange(effective);
      } else {
        this.#options.assembly.serve(entry.synced);
        this.#options.onSync(entry.synced);
      }
    }
  }
}

function without(entry: Entry, resource: string): Entry[] {
  if ("synced" in entry) return entry.synced === resource ? [] : [entry];
  const changes = entry.changes.filter((change) => change.resource !== resource);
  entry.versions.delete(resource);
  return changes.length === 0 && entry.versions.size === 0 ? [] : [{ ...entry, changes }];
}

/** The objects of a resource that were delivered, to synthesise deletes after a relist. */
export class KnownObjects {
  readonly #resource: string;
  /** The number of the list in or after which each key was last seen. */
  readonly #seen = new Map<string, number>();
  #list = 0;

  constructor(resource: string) {
    this.#resource = resource;
  }

  get size(): number {
    return this.#seen.size;
  }

  put({ namespace, name, object }: ReceivedObject): Change {
    this.#seen.set(objectKey(namespace, name), this.#list);
    return { resource: this.#resource, namespace, name, object };
  }

  /** The list contains the object, but not its content. */
  keep({ namespace, name }: Omit<ReceivedObject, "object">): void {
    const key = objectKey(namespace, name);
    if (this.#seen.has(key)) this.#seen.set(key, this.#list);
  }

  remove({ namespace, name }: ReceivedObject): Change {
    this.#seen.delete(objectKey(namespace, name));
    return { resource: this.#resource, namespace, name, object: undefined };
  }

  beginList(): void {
    this.#list += 1;
  }

  /** The list is complete: returns deletes for the objects that it did not contain. */
  endList(): Change[] {
    const deleted: Change[] = [];
    for (const [key, list] of this.#seen) {
      if (list === this.#list) continue;
      this.#seen.delete(key);
      // Neither a namespace nor a name has a slash.
      const slash = key.indexOf("/");
      const [namespace, name] = [key.slice(0, slash), key.slice(slash + 1)];
      deleted.push({ resource: this.#resource, namespace, name, object: undefined });
    }
    return deleted;
  }
}
