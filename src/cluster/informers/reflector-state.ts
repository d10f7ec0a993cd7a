import { Backoff } from "../client/retry.ts";
import { REFLECTOR_LIMITS, type ReflectorLimits } from "./reflector-limits.ts";
import type { Action, ReflectorInput, ReflectorStep } from "./reflector-steps.ts";
import { KnownObjects } from "./view-updater.ts";

const NOTHING: ReflectorStep = { changes: [], synced: false, action: undefined };

/** The action after a delay. */
type Goal = "locate" | "list all" | "same page" | "watch";

/**
 * List and watch of one resource as a pure state machine: no I/O, no clock, no randomness of its own. Guarantee: after
 * any sequence of inputs, once the server responds and stops changing, the returned changes add up to the stored
 * objects.
 */
export class ReflectorState {
  readonly #limits: ReflectorLimits;
  readonly #random: () => number;
  readonly #backoff: Backoff;
  /** Separate: versions expire during an outage, after which the first relist must not wait again. */
  readonly #expirations: Backoff;
  readonly #known: KnownObjects;
  #current: Action = { do: "locate" };
  #page: Action = { do: "locate" };
  #begun = 0;
  #goal: Goal = "locate";
  /** The resourceVersion to resume from. `undefined`: a list is needed. */
  #version: string | undefined;
  /** Whether the initial events of a streaming list are incomplete. */
  #initial = false;
  /** Cleared when the server rejects streaming lists. */
  #supportsStreaming = true;
  #streamFailures = 0;
  #watchRejections = 0;
  #absentDiscoveries = 0;
  #lists = 0;

  constructor(resource: string, random: () => number, limits: ReflectorLimits = REFLECTOR_LIMITS) {
    this.#known = new KnownObjects(resource);
    this.#limits = limits;
    this.#random = random;
    this.#backoff = new Backoff(random, limits.backoff);
    this.#expirations = new Backoff(random, limits.backoff);
  }

  /** The number of lists after the first. */
  get relists(): number {
    return Math.max(0, this.#lists - 1);
  }

  get size(): number {
    return this.#known.size;
  }

  /** The resourceVersion that all returned changes add up to. `undefined` while a list is incomplete. */
  get version(): string | undefined {
    return this.#version;
  }

  start(now: number): Action {
    return this.#begin("locate", now);
  }

  step(input: ReflectorInput, now: number): ReflectorStep {
    switch (input.saw) {
      case "served":
        this.#absentDiscoveries = 0;
        return this.#go("list all", now);
      case "not served":
        return this.#notServed();
      case "page":
        return this.#paged(input, now);
      case "object":
      case "deletion":
        return this.#event(input);
      case "bookmark":
        return this.#bookmark(input);
      case "error status":
        return this.#rejected(input.status, input.retryAfterMs, now);
      case "failure":
        return this.#failed(input.tooLarge, now);
      case "end":
        return this.#ended(now);
      case "idle timeout":
        // A server without streaming lists may send objects and never complete the initial events.
        return this.#initial ? this.#failed(false, now) : this.#go("watch", now);
      case "timer":
        return this.#go(this.#goal, now);
    }
  }

  #paged(
    { items, version, next, skipped }: ReflectorInput & { readonly saw: "page" },
    now: number,
  ): ReflectorStep {
    const changes = items.map((received) => this.#known.put(received));
    if (skipped !== undefined) this.#known.keep(skipped);
    if (next !== undefined) {
      this.#page = { do: "list", next };
      return { ...this.#go("same page", now), changes };
    }
    // All pages are one snapshot of this version.
    this.#version = version;
    this.#streamFailures = 0;
    this.#lists += 1;
    return {
      ...this.#go("watch", now),
      changes: [...changes, ...this.#known.endList()],
      synced: true,
    };
  }

  #event({
    saw,
    received,
    version,
  }: ReflectorInput & { readonly saw: "object" | "deletion" }): ReflectorStep {
    // Initial events are ordered by name, not by version: until their end no version can be resumed from.
    if (!this.#initial) this.#version = version;
    this.#watchRejections = 0;
    return {
      ...NOTHING,
      changes: [saw === "object" ? this.#known.put(received) : this.#known.remove(received)],
    };
  }

  #bookmark({ version, endOfList }: ReflectorInput & { readonly saw: "bookmark" }): ReflectorStep {
    if (this.#initial && !endOfList) return NOTHING;
    this.#watchRejections = 0;
    this.#version = version;
    if (!this.#initial) return NOTHING;
    this.#initial = false;
    this.#streamFailures = 0;
    this.#lists += 1;
    // The stream continues as a watch.
    return { ...NOTHING, changes: this.#known.endList(), synced: true };
  }

  #rejected(status: number, retryAfterMs: number | undefined, now: number): ReflectorStep {
    if (status === 404) return this.#wait("locate", now, retryAfterMs);
    if (status === 410) return this.#expired(now, retryAfterMs);
    const isTransient = status === 401 || status === 403 || status === 429 || status >= 500;
    if (this.#initial && !isTransient) {
      this.#supportsStreaming = false;
      return this.#go("list all", now);
    }
    if (this.#initial) this.#streamFailures += 1;
    if (this.#current.do === "list" && !isTransient) return this.#wait("list all", now, retryAfterMs);
    if (this.#watching) {
      this.#watchRejections += 1;
      // For example a version that the server never reaches, after etcd was restored from a backup.
      if (!isTransient || this.#watchRejections >= this.#limits.watchRejections) this.#version = undefined;
    }
    return this.#wait(this.#resumption, now, retryAfterMs);
  }

  /**
   * 410: the version, or the version of the continue token, is compacted. Known objects stay until a new list is complete. Usual after
   * an outage, so the first relist starts at once; repeated ones back off.
   */
  #expired(now: number, retryAfterMs: number | undefined): ReflectorStep {
    this.#version = undefined;
    const first = this.#expirations.fresh(now);
    const ms = Math.max(this.#expirations.next(now), retryAfterMs ?? 0);
    return first ? this.#go("list all", now) : { ...NOTHING, action: this.#pause("list all", ms) };
  }

  #failed(tooLarge: boolean, now: number): ReflectorStep {
    if (this.#initial) this.#streamFailures += 1;
    if (tooLarge) {
      // The same line would arrive again: relist in pages, which leave such an object out.
      this.#supportsStreaming = false;
      this.#version = undefined;
      return this.#wait("list all", now, undefined);
    }
    return this.#wait(this.#resumption, now, undefined);
  }

  #ended(now: number): ReflectorStep {
    // The server ends every watch at its timeout. A watch that ends at once has failed, and so has an incomplete list.
    const wasLong = now - this.#begun >= this.#limits.shortWatchMs;
    return this.#initial || !wasLong ? this.#failed(false, now) : this.#go("watch", now);
  }

  #notServed(): ReflectorStep {
    this.#absentDiscoveries += 1;
    this.#version = undefined;
    const ms = this.#limits.notServedMs * (0.75 + this.#random() / 2);
    const action = this.#pause("locate", ms);
    // One of several API servers may not know a new kind yet. Objects are removed only after several discoveries without the kind.
    if (this.#absentDiscoveries < this.#limits.absentDiscoveries) return { ...NOTHING, action };
    this.#known.beginList();
    return { ...NOTHING, changes: this.#known.endList(), action };
  }

  get #watching(): boolean {
    return this.#current.do === "watch" || (this.#current.do === "stream list" && !this.#initial);
  }

  /** How to continue the interrupted action. */
  get #resumption(): Goal {
    if (this.#current.do === "locate") return "locate";
    if (this.#current.do === "list") return "same page";
    return "watch";
  }

  #go(goal: Goal, now: number): ReflectorStep {
    return { ...NOTHING, action: this.#begin(goal, now) };
  }

  #wait(goal: Goal, now: number, retryAfterMs: number | undefined): ReflectorStep {
    const ms = Math.max(this.#backoff.next(now), retryAfterMs ?? 0);
    return { ...NOTHING, action: this.#pause(goal, ms) };
  }

  #pause(goal: Goal, ms: number): Action {
    this.#goal = goal;
    this.#initial = false;
    this.#current = { do: "wait", ms };
    return this.#current;
  }

  #begin(goal: Goal, now: number): Action {
    this.#current = this.#actionFor(goal);
    this.#initial = this.#current.do === "stream list";
    this.#begun = now;
    return this.#current;
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
    this.#watchRejections = 0;
    this.#known.beginList();
    if (this.#supportsStreaming && this.#streamFailures < this.#limits.streamFailures) {
      return { do: "stream list", timeoutSeconds };
    }
    this.#page = { do: "list", next: undefined };
    return this.#page;
  }
}
