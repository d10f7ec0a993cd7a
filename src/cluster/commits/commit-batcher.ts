import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import { DEADLINE_EXCEEDED, type Fact, failureOf } from "../../core/evaluate/need.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import type { Deadline } from "../../core/view/source.ts";
import type { SwapResult } from "../client/object-access.ts";
import { onAbort } from "../client/retry.ts";

/** How a lane reaches its object. */
export interface BatcherAccess {
  readonly read: (deadline: Deadline) => Promise<Fact>;
  readonly swap: (
    object: JsonObject,
    version: string | undefined,
    signal: AbortSignal,
  ) => Promise<SwapResult>;
  /** Milliseconds, any origin. */
  readonly clock: () => number;
  readonly random: () => number;
  /** Called whenever nothing is under way any more. */
  readonly idle: () => void;
}

/**
 * Between a fact and its commit there is only evaluation, which does not wait. Whoever takes longer is fetching or writing
 * something else first: the next one goes on, and the late commit is told apart by its version.
 */
export const TURN_LIMIT_MS = 250;

/**
 * Two writes of one process in a row are kept apart by up to twice what the last one took, so that another process, which must read
 * after each conflict, finds a gap. Without it the one that knows the newest version wins for ever.
 */
const GAP_FACTOR = 2;
const LONGEST_GAP_MS = 50;

/** How long one read of the object may take on behalf of all who wait for it. Each of them has a deadline of its own as well. */
const READ_MS = 10_000;

/** Marks the versions of objects that are not written yet, so that they are never taken for one of the API server's. */
const VIRTUAL = "usher-unwritten-";
let lastVirtual = 0;

interface Member {
  readonly object: JsonObject;
  readonly version: string;
  readonly signal: AbortSignal;
  readonly settle: (result: CommitResult) => void;
}

interface Waiter {
  readonly signal: AbortSignal;
  readonly arrived: number;
  readonly settle: (fact: Fact) => void;
}

/** What is stored, as far as we know. */
interface Base {
  readonly version: string | undefined;
  /** The version under which it was given out before it was written. */
  readonly alias?: string;
  /** Absent where only the version is known. */
  readonly fact?: Fact;
  /** When it was asked for: who came later needs a newer one. */
  readonly asOf: number;
}

/**
 * The way to one object that many requests want to change at once. They take turns at reading its newest state, written or not, and
 * what they make of it is written in batches: one write for all that came while the last one was under way. Another process that got
 * in between is met as a conflict, and then all of the batch read and judge again.
 *
 * Turns only save conflicts. What keeps a count right is that each object in the chain was made from the one before it, and that the
 * first was made from what is stored when the write arrives.
 *
 * Two things that this can't promise. A request whose caller leaves while its batch is on the way is counted although nothing comes
 * of it; the reconciler of the module settles that, as it does for an object that was allowed and never created. And a refusal may rest
 * on a change that is then not written; who tries again gets in.
 */
export class CommitBatcher {
  readonly #access: BatcherAccess;
  #base: Base | undefined;
  #batch: Member[] = [];
  #flight: Member[] = [];
  #waiters: Waiter[] = [];
  #holder: { readonly signal: AbortSignal; readonly release: () => void } | undefined;
  #reading: AbortController | undefined;
  #writing: AbortController | undefined;
  #scheduled = false;
  #gapMs = 0;
  /** Counts what happens, to tell earlier from later. */
  #tick = 0;

  constructor(access: BatcherAccess) {
    this.#access = access;
  }

  get idle(): boolean {
    return (
      this.#batch.length === 0 &&
      this.#flight.length === 0 &&
      this.#waiters.length === 0 &&
      this.#holder === undefined &&
      this.#reading === undefined
    );
  }

  /** The newest state of the object, in the order of asking. The turn ends with a commit, `leave`, or the signal. */
  fetch({ signal }: Deadline): Promise<Fact> {
    if (signal.aborted) return Promise.resolve(DEADLINE_EXCEEDED);
    const { promise, resolve } = Promise.withResolvers<Fact>();
    const waiter: Waiter = { signal, arrived: ++this.#tick, settle: resolve };
    const off = onAbort(signal, () => {
      resolve(DEADLINE_EXCEEDED);
      this.#waiters = this.#waiters.filter((one) => one !== waiter);
      if (this.#waiters.length === 0) this.#reading?.abort();
      this.#rest();
    });
    this.#waiters.push(waiter);
    this.#next();
    return promise.finally(off);
  }

  commit(object: JsonObject, version: string | undefined, { signal }: Deadline): Promise<CommitResult> {
    let result: Promise<CommitResult>;
    if (signal.aborted) result = Promise.resolve(DEADLINE_EXCEEDED);
    else if (!this.#isHead(version)) result = Promise.resolve("conflict");
    else result = this.#join(object, signal);
    // Only now: the next one in turn must see what has just been added.
    this.leave(signal);
    this.#rest();
    return result;
  }

  /** Ends the turn that is held under this signal. */
  leave(signal: AbortSignal): void {
    if (this.#holder?.signal !== signal) return;
    this.#holder.release();
    this.#holder = undefined;
    this.#next();
  }

  #isHead(version: string | undefined): boolean {
    const last = this.#batch.at(-1) ?? this.#flight.at(-1);
    if (last !== undefined) return version === last.version;
    if (this.#base !== undefined)
      return version === this.#base.version || (version !== undefined && version === this.#base.alias);
    if (version?.startsWith(VIRTUAL)) return false;
    // Read past this lane, before it was open. The write itself will tell whether it still stands.
    this.#base = { version, asOf: 0 };
    return true;
  }

  #join(object: JsonObject, signal: AbortSignal): Promise<CommitResult> {
    const { promise, resolve } = Promise.withResolvers<CommitResult>();
    const version = `${VIRTUAL}${++lastVirtual}`;
    this.#batch.push({ object, version, signal, settle: resolve });
    const off = onAbort(signal, () => {
      resolve(DEADLINE_EXCEEDED);
      // Nobody waits for this write any more: it must not keep the others.
      if (this.#flight.length > 0 && this.#flight.every((member) => member.signal.aborted))
        this.#writing?.abort();
    });
    this.#schedule(0);
    return promise.finally(off);
  }

  /** Gives the turn to the next one, or finds out first what to give. */
  #next(): void {
    if (this.#holder !== undefined) return;
    const [waiter] = this.#waiters;
    const unwritten = this.#batch.at(-1) ?? this.#flight.at(-1);
    if (waiter === undefined) this.#rest();
    else if (unwritten !== undefined) this.#give(waiter, foundAs(unwritten.object, unwritten.version));
    else if (this.#base?.fact !== undefined && this.#base.asOf > waiter.arrived)
      this.#give(waiter, this.#base.fact);
    else void this.#read();
  }

  #give(waiter: Waiter, fact: Fact): void {
    this.#waiters.shift();
    const { signal } = waiter;
    const end = () => this.leave(signal);
    const timer = setTimeout(end, TURN_LIMIT_MS);
    const off = onAbort(signal, end);
    const release = () => {
      clearTimeout(timer);
      off();
    };
    this.#holder = { signal, release };
    waiter.settle(fact);
  }

  /** One read for all who are waiting when it is sent. */
  async #read(): Promise<void> {
    if (this.#reading !== undefined) return;
    const reading = new AbortController();
    this.#reading = reading;
    const asOf = ++this.#tick;
    const until = this.#access.clock() + READ_MS;
    const remaining = () => (reading.signal.aborted ? 0 : until - this.#access.clock());
    const fact = await this.#access.read({ signal: reading.signal, remaining });
    this.#reading = undefined;
    if (failureOf(fact) !== undefined) {
      const asked = this.#waiters.filter(({ arrived }) => arrived < asOf);
      this.#waiters = this.#waiters.filter(({ arrived }) => arrived > asOf);
      for (const { settle } of asked) settle(fact);
    } else if (this.#batch.length === 0 && this.#flight.length === 0) {
      const version = "found" in fact ? stringAt(fact.found, "metadata", "resourceVersion") : undefined;
      this.#base = { version, fact, asOf };
    }
    this.#next();
  }

  #schedule(ms: number): void {
    if (this.#scheduled || this.#flight.length > 0) return;
    this.#scheduled = true;
    const flush = () => {
      this.#scheduled = false;
      void this.#flush();
    };
    // Not at once: all who wait for a turn now get it within this step of the loop, and join.
    if (ms === 0) setImmediate(flush);
    else setTimeout(flush, ms);
  }

  async #flush(): Promise<void> {
    this.#dropGone();
    const last = this.#batch.at(-1);
    if (last === undefined || this.#base === undefined) return this.#next();
    this.#flight = this.#batch;
    this.#batch = [];
    this.#writing = new AbortController();
    const asOf = ++this.#tick;
    const sent = this.#access.clock();
    const swapped = await this.#access.swap(last.object, this.#base.version, this.#writing.signal);
    this.#gapMs = Math.min((this.#access.clock() - sent) * GAP_FACTOR, LONGEST_GAP_MS);
    this.#land(swapped, last, asOf);
    this.#next();
  }

  #land(swapped: SwapResult, last: Member, asOf: number): void {
    const flown = this.#flight;
    this.#flight = [];
    this.#writing = undefined;
    if (typeof swapped === "object" && "retryDelayMs" in swapped) {
      // Nothing was done. What has joined meanwhile goes along when the time has come.
      this.#batch = [...flown, ...this.#batch];
      this.#schedule(swapped.retryDelayMs);
    } else if (typeof swapped === "object" && "written" in swapped) {
      const { written, version } = swapped;
      this.#base = { version, alias: last.version, fact: { found: written, complete: true }, asOf };
      settleAll(flown, "done");
      if (this.#batch.length > 0) this.#schedule(Math.ceil(this.#gapMs * this.#access.random()));
    } else {
      // What is stored is not what we thought; everything that was made from it falls.
      this.#base = undefined;
      settleAll(flown, typeof swapped === "object" ? swapped : "conflict");
      settleAll(this.#batch.splice(0), "conflict");
    }
  }

  /** Who has left is not counted. Those behind made theirs from it, so they judge again, without a word to the API server. */
  #dropGone(): void {
    const gone = this.#batch.findIndex(({ signal }) => signal.aborted);
    if (gone >= 0) settleAll(this.#batch.splice(gone), "conflict");
  }

  #rest(): void {
    if (this.idle) this.#access.idle();
  }
}

function settleAll(members: readonly Member[], result: CommitResult): void {
  for (const { settle } of members) settle(result);
}

function foundAs(object: JsonObject, resourceVersion: string): Fact {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  return { found: { ...object, metadata: { ...metadata, resourceVersion } }, complete: true };
}
