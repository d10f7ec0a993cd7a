import { DEADLINE_EXCEEDED, type Fact, failureOf } from "../../core/decision/need.ts";
import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import type { Deadline } from "../../core/evaluate/source.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import type { SwapResult } from "../client/object-access.ts";
import { onAbort } from "../client/retry.ts";

/** How a batcher reads and writes its object. */
interface BatcherAccess {
  readonly read: (deadline: Deadline) => Promise<Fact>;
  readonly swap: (
    object: JsonObject,
    version: string | undefined,
    signal: AbortSignal,
  ) => Promise<SwapResult>;
  /** Milliseconds, any origin. */
  readonly clock: () => number;
  readonly random: () => number;
  /** Called when the batcher becomes idle. */
  readonly onIdle: () => void;
}

/**
 * Consecutive writes are separated by up to twice the duration of the last one, so that another replica, which must read after each
 * conflict, gets a chance. Otherwise the replica with the newest version wins forever.
 */
const GAP_FACTOR = 2;
const LONGEST_GAP_MS = 50;

/** For one shared read of the object. Each waiting request also has its own deadline. */
const READ_TIMEOUT_MS = 10_000;

/** The last known stored state. */
interface Stored {
  readonly version: string | undefined;
  /** Its version before it was written. */
  readonly alias?: string;
  /** Absent if only the version is known. */
  readonly fact?: Fact;
  /** When it was requested: a request that arrived later needs a newer read. */
  readonly asOf: number;
}

/**
 * Batches the writes of concurrent requests to one object. Requests take turns at reading its newest state, written or
 * not, and their changes are written together: one write for all that arrived during the previous write. A write of
 * another replica in between is a conflict, after which all requests of the batch read and evaluate again.
 *
 * Turns only avoid conflicts. Counts are correct because each state is derived from the one before it, and the first
 * from the stored object.
 *
 * Not guaranteed: a request whose caller disconnects while its batch is in flight is counted, although nothing is
 * created; the module's reconciler corrects it, as for an object that was allowed and never created.
 */
export class CommitBatcher {
  readonly #access: BatcherAccess;
  #stored: Stored | undefined;
  #batch: PendingCommit[] = [];
  #inFlight: PendingCommit[] = [];
  #waiters: TurnRequest[] = [];
  #turn: Turn | undefined;
  #reading: AbortController | undefined;
  #writing: AbortController | undefined;
  #scheduled = false;
  #gapMs = 0;
  /** A logical clock: orders arrivals, reads and writes. */
  #tick = 0;

  constructor(access: BatcherAccess) {
    this.#access = access;
  }

  get idle(): boolean {
    return this.#pending.length + this.#waiters.length === 0 && (this.#turn ?? this.#reading) === undefined;
  }

  /** Unwritten commits, the newest last. */
  get #pending(): readonly PendingCommit[] {
    return [...this.#inFlight, ...this.#batch];
  }

  /** The newest state of the object, in order of arrival. The turn ends with a commit, `release`, or the signal. */
  fetch({ signal }: Deadline): Promise<Fact> {
    if (signal.aborted) return Promise.resolve(DEADLINE_EXCEEDED);
    const { promise, resolve } = Promise.withResolvers<Fact>();
    const waiter: TurnRequest = { signal, arrived: ++this.#tick, resolve };
    const off = onAbort(signal, () => {
      resolve(DEADLINE_EXCEEDED);
      this.#waiters = this.#waiters.filter((other) => other !== waiter);
      if (this.#waiters.length === 0) this.#reading?.abort();
      this.#notifyIdle();
    });
    this.#waiters.push(waiter);
    this.#next();
    return promise.finally(off);
  }

  commit(object: JsonObject, version: string | undefined, { signal }: Deadline): Promise<CommitResult> {
    let result: Promise<CommitResult>;
    if (signal.aborted) result = Promise.resolve(DEADLINE_EXCEEDED);
    else if (!this.#isNewest(version)) result = Promise.resolve("conflict");
    else result = this.#join(object, signal);
    // After joining: the next turn must see the new commit.
    this.release(signal);
    this.#notifyIdle();
    return result;
  }

  /** Ends the turn of this signal. */
  release(signal: AbortSignal): void {
    if (this.#turn?.signal !== signal) return;
    this.#turn.release();
    this.#turn = undefined;
    this.#next();
  }

  /** Waits until the changes in flight have been written or have failed. */
  waitForWrites(): Promise<unknown> {
    return Promise.all(this.#pending.map(({ result }) => result));
  }

  #isNewest(version: string | undefined): boolean {
    const last = this.#pending.at(-1);
    if (last !== undefined) return version === last.version;
    if (this.#stored !== undefined)
      return version === this.#stored.version || (version !== undefined && version === this.#stored.alias);
    if (isUnwrittenVersion(version)) return false;
    // Read before this batcher existed. The write itself conflicts if the version is outdated.
    this.#stored = { version, asOf: 0 };
    return true;
  }

  #join(object: JsonObject, signal: AbortSignal): Promise<CommitResult> {
    const commit = pendingCommit(object, signal);
    this.#batch.push(commit);
    const off = onAbort(signal, () => {
      commit.resolve(DEADLINE_EXCEEDED);
      // No request waits for this write, so it must not delay the others.
      if (this.#inFlight.length > 0 && this.#inFlight.every((one) => one.signal.aborted))
        this.#writing?.abort();
    });
    this.#schedule(0);
    return commit.result.finally(off);
  }

  /** Gives the turn to the next request, reading the object first if necessary. */
  #next(): void {
    if (this.#turn !== undefined) return;
    const [waiter] = this.#waiters;
    const unwritten = this.#pending.at(-1);
    if (waiter === undefined) this.#notifyIdle();
    else if (unwritten !== undefined) this.#startTurn(waiter, unwrittenFact(unwritten));
    else if (this.#stored?.fact !== undefined && this.#stored.asOf > waiter.arrived)
      this.#startTurn(waiter, this.#stored.fact);
    else void this.#read();
  }

  #startTurn(waiter: TurnRequest, fact: Fact): void {
    this.#waiters.shift();
    const { signal } = waiter;
    this.#turn = startTurn(signal, () => this.release(signal));
    waiter.resolve(fact);
  }

  /** One read for all requests waiting when it is sent. */
  async #read(): Promise<void> {
    if (this.#reading !== undefined) return;
    const reading = new AbortController();
    this.#reading = reading;
    const asOf = ++this.#tick;
    const until = this.#access.clock() + READ_TIMEOUT_MS;
    const remaining = () => (reading.signal.aborted ? 0 : until - this.#access.clock());
    const fact = await this.#access.read({ signal: reading.signal, remaining });
    this.#reading = undefined;
    if (failureOf(fact) !== undefined) {
      const affected = this.#waiters.filter(({ arrived }) => arrived < asOf);
      this.#waiters = this.#waiters.filter(({ arrived }) => arrived > asOf);
      for (const { resolve } of affected) resolve(fact);
    } else if (this.#pending.length === 0) {
      const version = "found" in fact ? stringAt(fact.found, "metadata", "resourceVersion") : undefined;
      this.#stored = { version, fact, asOf };
    }
    this.#next();
  }

  #schedule(ms: number): void {
    if (this.#scheduled || this.#inFlight.length > 0) return;
    this.#scheduled = true;
    const flush = () => {
      this.#scheduled = false;
      void this.#flush();
    };
    // Deferred: requests that wait for a turn get it within this iteration of the event loop, and join.
    if (ms === 0) setImmediate(flush);
    else setTimeout(flush, ms);
  }

  async #flush(): Promise<void> {
    this.#dropAborted();
    const last = this.#batch.at(-1);
    if (last === undefined || this.#stored === undefined) return this.#next();
    this.#inFlight = this.#batch;
    this.#batch = [];
    this.#writing = new AbortController();
    const asOf = ++this.#tick;
    const sent = this.#access.clock();
    const result = await this.#access.swap(last.object, this.#stored.version, this.#writing.signal);
    this.#gapMs = Math.min((this.#access.clock() - sent) * GAP_FACTOR, LONGEST_GAP_MS);
    this.#finish(result, last, asOf);
    this.#next();
  }

  #finish(result: SwapResult, last: PendingCommit, asOf: number): void {
    const commits = this.#inFlight;
    this.#inFlight = [];
    this.#writing = undefined;
    if (typeof result === "object" && "retryDelayMs" in result) {
      // Nothing was done. Commits that joined in the meantime are written with the retry.
      this.#batch = [...commits, ...this.#batch];
      this.#schedule(result.retryDelayMs);
    } else if (typeof result === "object" && "written" in result) {
      const { written, version } = result;
      this.#stored = { version, alias: last.version, fact: { found: written, complete: true }, asOf };
      resolveAll(commits, "done");
      if (this.#batch.length > 0) this.#schedule(Math.ceil(this.#gapMs * this.#access.random()));
    } else {
      // The stored state is unknown: everything based on it conflicts.
      this.#stored = undefined;
      resolveAll(commits, typeof result === "object" ? result : "conflict");
      resolveAll(this.#batch.splice(0), "conflict");
    }
  }

  /** Drops commits of aborted requests. Later commits are based on them, so they conflict without a write. */
  #dropAborted(): void {
    const aborted = this.#batch.findIndex(({ signal }) => signal.aborted);
    if (aborted >= 0) resolveAll(this.#batch.splice(aborted), "conflict");
  }

  #notifyIdle(): void {
    if (this.idle) this.#access.onIdle();
  }
}

/** Marks versions of unwritten objects, so that they never equal one of the API server's. */
const UNWRITTEN = "usher-unwritten-";
let lastUnwritten = 0;

/** A commit that is queued or in flight. */
interface PendingCommit {
  readonly object: JsonObject;
  /** The version under which later requests see the object before it is written. */
  readonly version: string;
  readonly signal: AbortSignal;
  readonly result: Promise<CommitResult>;
  readonly resolve: (result: CommitResult) => void;
}

function pendingCommit(object: JsonObject, signal: AbortSignal): PendingCommit {
  const { promise: result, resolve } = Promise.withResolvers<CommitResult>();
  return { object, version: `${UNWRITTEN}${++lastUnwritten}`, signal, result, resolve };
}

function isUnwrittenVersion(version: string | undefined): boolean {
  return version?.startsWith(UNWRITTEN) === true;
}

/** The object as a fact, before it is written. */
function unwrittenFact({ object, version }: PendingCommit): Fact {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const found = { ...object, metadata: { ...metadata, resourceVersion: version } };
  return { found, complete: true, unwritten: true };
}

function resolveAll(commits: readonly PendingCommit[], result: CommitResult): void {
  for (const { resolve } of commits) resolve(result);
}

/**
 * Only synchronous evaluation happens between a fact and its commit. A request that takes longer is fetching or writing
 * something else: the next one continues, and the late commit conflicts by its version.
 */
const TURN_LIMIT_MS = 250;

/** The right of one request to read the newest state and to commit on top of it. */
interface Turn {
  readonly signal: AbortSignal;
  readonly release: () => void;
}

/** A request that waits for its turn. */
interface TurnRequest {
  readonly signal: AbortSignal;
  readonly arrived: number;
  readonly resolve: (fact: Fact) => void;
}

/** Calls `end` when the request's signal aborts or the turn takes too long. */
function startTurn(signal: AbortSignal, end: () => void): Turn {
  const timer = setTimeout(end, TURN_LIMIT_MS);
  const off = onAbort(signal, end);
  const release = (): void => {
    clearTimeout(timer);
    off();
  };
  return { signal, release };
}
