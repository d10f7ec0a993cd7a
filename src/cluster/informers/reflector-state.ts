import { Backoff } from "../client/backoff.ts";
import { KnownObjects } from "./known-objects.ts";
import { REFLECTOR_LIMITS, type ReflectorLimits } from "./reflector-limits.ts";
import type { Action, Input, Step } from "./reflector-steps.ts";

const NOTHING: Step = { changes: [], synced: false, action: undefined };

/** Where to go on after a wait. */
type Goal = "locate" | "list all" | "same page" | "watch";

/**
 * List and watch of one resource as a state machine: it does nothing itself, reads no clock and rolls no dice. Its promise: whatever
 * it is shown, once the server answers and is quiet, the changes that it gave add up to what the server has.
 */
export class ReflectorState {
  readonly #limits: ReflectorLimits;
  readonly #random: () => number;
  readonly #backoff: Backoff;
  /** Of its own: a version grows too old during an outage, and whoever waited through that has waited enough. */
  readonly #expirations: Backoff;
  readonly #known: KnownObjects;
  #under: Action = { do: "locate" };
  #page: Action = { do: "locate" };
  #begun = 0;
  #goal: Goal = "locate";
  /** Up to where we know everything. `undefined`: nowhere, all has to be listed. */
  #version: string | undefined;
  /** Whether the beginning of a streaming list is still coming. */
  #initial = false;
  #pageLimit: number;
  /** Whether the server has streaming lists, as far as we know. */
  #streams = true;
  #streamFailures = 0;
  #watchRefusals = 0;
  #absences = 0;
  #lists = 0;

  constructor(resource: string, random: () => number, limits: ReflectorLimits = REFLECTOR_LIMITS) {
    this.#known = new KnownObjects(resource);
    this.#limits = limits;
    this.#random = random;
    this.#backoff = new Backoff(random, limits.backoff);
    this.#expirations = new Backoff(random, limits.backoff);
    this.#pageLimit = limits.pageLimit;
  }

  /** How often all was listed again. */
  get relists(): number {
    return Math.max(0, this.#lists - 1);
  }

  get size(): number {
    return this.#known.size;
  }

  start(now: number): Action {
    return this.#begin("locate", now);
  }

  step(input: Input, now: number): Step {
    switch (input.saw) {
      case "served":
        this.#absences = 0;
        return this.#go("list all", now);
      case "not served":
        return this.#absent();
      case "page":
        return this.#paged(input, now);
      case "object":
      case "deletion":
        return this.#event(input);
      case "bookmark":
        return this.#bookmark(input);
      case "refusal":
        return this.#refused(input.status, input.retryAfterMs, now);
      case "failure":
        return this.#failed(input.tooLarge, now);
      case "end":
        return this.#ended(now);
      case "silence":
        // A server that does not know streaming lists may send objects and never say that it has sent them all.
        return this.#initial ? this.#failed(false, now) : this.#go("watch", now);
      case "time":
        return this.#go(this.#goal, now);
    }
  }

  #paged({ items, version, next }: Input & { readonly saw: "page" }, now: number): Step {
    const changes = items.map((arrival) => this.#known.put(arrival));
    if (next !== undefined) {
      this.#page = { do: "list", limit: this.#pageLimit, next };
      return { ...this.#go("same page", now), changes };
    }
    // The pages are one snapshot, and this is its version.
    this.#version = version;
    this.#streamFailures = 0;
    this.#lists += 1;
    return {
      ...this.#go("watch", now),
      changes: [...changes, ...this.#known.endList()],
      synced: true,
    };
  }

  #event({ saw, arrival, version }: Input & { readonly saw: "object" | "deletion" }): Step {
    // A streaming list begins in the order of names, not of versions: until its end no version says what is known.
    if (!this.#initial) this.#version = version;
    this.#watchRefusals = 0;
    return {
      ...NOTHING,
      changes: [saw === "object" ? this.#known.put(arrival) : this.#known.remove(arrival)],
    };
  }

  #bookmark({ version, endOfList }: Input & { readonly saw: "bookmark" }): Step {
    if (this.#initial && !endOfList) return NOTHING;
    this.#watchRefusals = 0;
    this.#version = version;
    if (!this.#initial) return NOTHING;
    this.#initial = false;
    this.#streamFailures = 0;
    this.#lists += 1;
    // The stream goes on as a watch.
    return { ...NOTHING, changes: this.#known.endList(), synced: true };
  }

  #refused(status: number, retryAfterMs: number | undefined, now: number): Step {
    if (status === 404) return this.#wait("locate", now, retryAfterMs);
    if (status === 410) return this.#expired(now, retryAfterMs);
    const mayPass = status === 401 || status === 403 || status === 429 || status >= 500;
    if (this.#initial && !mayPass) {
      this.#streams = false;
      return this.#go("list all", now);
    }
    if (this.#initial) this.#streamFailures += 1;
    if (this.#under.do === "list" && !mayPass) return this.#wait("list all", now, retryAfterMs);
    if (this.#watching) {
      this.#watchRefusals += 1;
      // Such as a version that this server has not reached and never will, after its store was set back.
      if (!mayPass || this.#watchRefusals >= this.#limits.watchRefusals) this.#version = undefined;
    }
    return this.#wait(this.#resumption, now, retryAfterMs);
  }

  /**
   * Too old: a version that is compacted, or a continue token of such a one. What is known stays until a new list is whole. Usual
   * after a long break, so at once; where it comes again and again, something else is wrong.
   */
  #expired(now: number, retryAfterMs: number | undefined): Step {
    this.#version = undefined;
    const first = this.#expirations.fresh(now);
    const ms = Math.max(this.#expirations.next(now), retryAfterMs ?? 0);
    return first ? this.#go("list all", now) : { ...NOTHING, action: this.#pause("list all", ms) };
  }

  #failed(tooLarge: boolean, now: number): Step {
    if (this.#initial) this.#streamFailures += 1;
    if (tooLarge) {
      // The same would come again: all anew, in smaller portions.
      this.#pageLimit = this.#limits.smallPageLimit;
      this.#streams = false;
      this.#version = undefined;
      return this.#wait("list all", now, undefined);
    }
    return this.#wait(this.#resumption, now, undefined);
  }

  #ended(now: number): Step {
    // The server ends every watch in time. One that ends as soon as it began is trouble, and so is half a list.
    const lived = now - this.#begun >= this.#limits.shortWatchMs;
    return this.#initial || !lived ? this.#failed(false, now) : this.#go("watch", now);
  }

  #absent(): Step {
    this.#absences += 1;
    this.#version = undefined;
    const ms = this.#limits.notServedMs * (0.75 + this.#random() / 2);
    const action = this.#pause("locate", ms);
    // One of several API servers may not know a kind yet that the others serve. Only a kind that stays away has gone with its objects.
    if (this.#absences < this.#limits.absences) return { ...NOTHING, action };
    this.#known.beginList();
    return { ...NOTHING, changes: this.#known.endList(), action };
  }

  get #watching(): boolean {
    return this.#under.do === "watch" || (this.#under.do === "stream list" && !this.#initial);
  }

  /** How to go on with what was interrupted. */
  get #resumption(): Goal {
    if (this.#under.do === "locate") return "locate";
    if (this.#under.do === "list") return "same page";
    return "watch";
  }

  #go(goal: Goal, now: number): Step {
    return { ...NOTHING, action: this.#begin(goal, now) };
  }

  #wait(goal: Goal, now: number, retryAfterMs: number | undefined): Step {
    const ms = Math.max(this.#backoff.next(now), retryAfterMs ?? 0);
    return { ...NOTHING, action: this.#pause(goal, ms) };
  }

  #pause(goal: Goal, ms: number): Action {
    this.#goal = goal;
    this.#initial = false;
    this.#under = { do: "wait", ms };
    return this.#under;
  }

  #begin(goal: Goal, now: number): Action {
    this.#under = this.#actionFor(goal);
    this.#initial = this.#under.do === "stream list";
    this.#begun = now;
    return this.#under;
  }

  #actionFor(goal: Goal): Action {
    if (goal === "locate") return { do: "locate" };
    if (goal === "same page") return this.#page;
    const [shortest, longest] = this.#limits.watchSeconds;
    const timeoutSeconds = Math.floor(shortest + (longest - shortest) * this.#random());
    if (goal === "watch" && this.#version !== undefined) {
      return { do: "watch", version: this.#version, timeoutSeconds };
    }
    this.#version = undefined;
    this.#watchRefusals = 0;
    this.#known.beginList();
    if (this.#streams && this.#streamFailures < this.#limits.streamFailures) {
      return { do: "stream list", timeoutSeconds };
    }
    this.#page = { do: "list", limit: this.#pageLimit, next: undefined };
    return this.#page;
  }
}
