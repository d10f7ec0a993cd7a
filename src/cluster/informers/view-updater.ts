import type { Assembly } from "../../core/evaluate/assembly.ts";
import { equal } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { type Change, objectKey, type View } from "../../core/view/view.ts";
import { type TimeSliceQueue, TimeSlices } from "./time-slices.ts";

/** Small enough that one step of it is far below a turn, large enough that what an apply costs once is spread. */
const STEP = 50;

type Entry =
  | { readonly changes: readonly Change[] }
  /** Up to here, everything of this resource. */
  | { readonly synced: string };

export interface ViewUpdaterOptions {
  readonly assembly: Assembly;
  readonly turns: TimeSliceQueue;
  /** Whether someone may be deciding by the view already. */
  readonly inForce: () => boolean;
  /** Told of what really changed. */
  readonly changed: (changes: readonly Change[]) => void;
  /** Told when all that exists of a resource is in the view. */
  readonly synced: (resource: string) => void;
}

/** Brings changes into an assembly, in order and in small steps, so that what comes meanwhile is answered meanwhile. */
export class ViewUpdater {
  readonly #options: ViewUpdaterOptions;
  readonly #slices: TimeSlices;
  /** A resource is served in the view from its first object on, so until it is whole its objects wait here. */
  readonly #held = new Map<string, Map<string, Change>>();
  readonly #whole = new Set<string>();
  #queue: Entry[] = [];
  #open: Change[] = [];
  #working: Promise<void> | undefined;
  #stopped = false;

  constructor(options: ViewUpdaterOptions) {
    this.#options = options;
    this.#slices = new TimeSlices(options.turns);
  }

  add(resource: string, changes: readonly Change[], synced: boolean): void {
    if (!this.#whole.has(resource)) {
      const held = this.#held.get(resource) ?? new Map<string, Change>();
      // By object: a first list that breaks off again and again brings the same ones again and again.
      for (const change of changes) held.set(objectKey(change.namespace, change.name), change);
      this.#held.set(resource, held);
      if (!synced) return;
      this.#held.delete(resource);
      this.#whole.add(resource);
      const all = [...held.values()];
      // What comes late must come whole: half of the policies of a new kind would be another kind of wrong.
      if (this.#options.inForce()) this.#push({ changes: all });
      else
        for (let from = 0; from < all.length; from += STEP)
          this.#push({ changes: all.slice(from, from + STEP) });
    } else {
      const news = changes.filter((change) => !this.#isKnown(change));
      if (news.length > 0) this.#append(news);
    }
    if (synced) this.#push({ synced: resource });
  }

  /** Takes all of a resource out of the view, and holds back what comes of it next until that is whole again. */
  forget(resource: string, view: View): void {
    this.#held.delete(resource);
    this.#whole.delete(resource);
    // What still waits would come into the view after it was forgotten, and stay.
    this.#queue = this.#queue.flatMap((entry) => without(entry, resource));
    this.#open = [];
    const gone: Change[] = [];
    for (const object of view.list(resource)) {
      gone.push({ resource, namespace: namespaceOf(object), name: nameOf(object), object: undefined });
    }
    if (gone.length > 0) this.#push({ changes: gone });
  }

  /** Is done when everything that came so far is in the view. */
  async idle(): Promise<void> {
    await this.#working;
  }

  stop(): void {
    this.#stopped = true;
    this.#queue = [];
  }

  /**
   * Whether an object is in the view just so: most events of nodes are heartbeats, which change nothing that is kept. What the view says
   * counts only while nothing waits to come into it, as that may be about the same object.
   */
  #isKnown({ resource, namespace, name, object }: Change): boolean {
    if (this.#working !== undefined || object === undefined) return false;
    return equal(this.#options.assembly.view.get(resource, namespace, name), object);
  }

  /** Events come one by one: those that wait together are applied together. */
  #append(changes: readonly Change[]): void {
    const last = this.#queue.at(-1);
    if (last !== undefined && "changes" in last && last.changes === this.#open && this.#open.length < STEP) {
      for (const change of changes) this.#open.push(change);
      return;
    }
    this.#open = [...changes];
    this.#push({ changes: this.#open });
  }

  #push(entry: Entry): void {
    this.#queue.push(entry);
    this.#working ??= this.#work();
  }

  async #work(): Promise<void> {
    for (;;) {
      await this.#slices.next();
      const entry = this.#queue.shift();
      if (entry === undefined || this.#stopped) {
        // At once, not when the promise is seen to be done: what comes in between must find someone to do it.
        this.#working = undefined;
        return;
      }
      if ("changes" in entry) {
        const real = this.#options.assembly.apply(entry.changes);
        if (real.length > 0) this.#options.changed(real);
      } else {
        this.#options.assembly.serve(entry.synced);
        this.#options.synced(entry.synced);
      }
    }
  }
}

function without(entry: Entry, resource: string): Entry[] {
  if ("synced" in entry) return entry.synced === resource ? [] : [entry];
  const changes = entry.changes.filter((change) => change.resource !== resource);
  return changes.length === 0 ? [] : [{ changes }];
}
