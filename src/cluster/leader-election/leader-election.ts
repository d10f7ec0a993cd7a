import type { JsonObject } from "../../core/json.ts";
import { errorMessage, isNotFound, responseMessage } from "../client/api-response.ts";
import type { ApiResponse, Client } from "../client/client.ts";
import { pathSegment } from "../client/discovery.ts";
import { microTime } from "../client/micro-time.ts";
import { pause } from "../client/retry.ts";
import {
  isLeader,
  keptMetadata,
  LEASE_TIMES,
  type LeaseRecord,
  type LeaseState,
  type LeaseStep,
  type LeaseTimes,
  leaseRead,
  leaseStep,
  leaseTimeoutMs,
  leaseUncertain,
  leaseWait,
  leaseWritten,
  newLeaseState,
  recordOf,
} from "./lease-state.ts";

interface LeaderElectionOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly name: string;
  /** Unique among all candidates: the pod's name. */
  readonly identity: string;
  /** The owner of a Lease that this candidate creates, as an ownerReference. @default none */
  readonly owner?: JsonObject | undefined;
  /** Called when this candidate becomes the leader, or is it again after its Lease was deleted. */
  readonly onStartedLeading: () => void;
  /** Called when it is no longer the leader; the lease is released after the returned promise. */
  readonly onStoppedLeading: () => Promise<void> | void;
  /** Called with the reason when reading or renewing the lease failed. */
  readonly onError?: (why: string) => void;
  readonly times?: LeaseTimes;
  /** Milliseconds, any origin. */
  readonly clock?: () => number;
  /** For the times in the Lease, which are for display only. */
  readonly wallClock?: () => number;
  readonly random?: () => number;
}

/** Writes in a row that conflict although the lease is this candidate's, or missing: others edit it at the same moment. */
const ATTEMPTS = 3;

/**
 * A candidate of leader election by a coordination.k8s.io/v1 Lease. Releases the lease when stopped, so that a successor need not wait
 * for its expiry.
 */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #collection: string;
  readonly #path: string;
  readonly #clock: () => number;
  readonly #stop = new AbortController();
  #state: LeaseState;
  #isActive = false;
  #callbacks: Promise<void> = Promise.resolve();
  #acquired = "";
  /** Metadata of the Lease: a PUT without it would remove it. */
  #metadata: JsonObject;
  #expiry: NodeJS.Timeout | undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(options: LeaderElectionOptions) {
    const { owner } = options;
    this.#metadata = owner === undefined ? {} : { ownerReferences: [owner] };
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
    const namespace = pathSegment("namespace", options.namespace);
    this.#collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    this.#path = `${this.#collection}/${pathSegment("name", options.name)}`;
    this.#state = newLeaseState(options.identity, options.times ?? LEASE_TIMES);
  }

  /** To be checked before every write: true only while no other candidate can lead. */
  get leading(): boolean {
    return this.#isActive && isLeader(this.#state, this.#clock());
  }

  /** The last observed holder. @visibleForTesting */
  get holder(): string | undefined {
    return this.#state.observed?.record?.holder;
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Stops leading, awaits onStoppedLeading, and releases the lease. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    const held = this.#state.heldSince !== undefined;
    this.#stopLeading();
    await this.#callbacks;
    if (held) await this.#release();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const began = this.#clock();
      const succeeded = await this.#step();
      this.#update();
      const now = this.#clock();
      const random = this.#options.random ?? Math.random;
      const { retryMs } = this.#state.times;
      // Jittered, so that candidates do not write at the same time. A timed out request counts towards the interval.
      const again = began + retryMs * (0.75 + 0.5 * random());
      await pause(succeeded ? leaseWait(this.#state, now) : Math.max(0, again - now), signal);
    }
  }

  /** One read or one write. False if it failed. */
  async #step(): Promise<boolean> {
    const now = this.#clock();
    const next = leaseStep(this.#state, now);
    try {
      if (next.step === "read") {
        const record = await this.#read();
        if (typeof record === "string") return this.#report(record);
        const then = this.#observe(record);
        // A free lease is acquired immediately.
        return then.step === "read" || (await this.#write(then));
      }
      return await this.#write(next);
    } catch (error) {
      // Kept connections die together, and the renew deadline leaves no time to try each of them.
      this.#options.client.closeIdleConnections?.();
      return this.#report(errorMessage(`lease ${this.#options.name}`, error));
    }
  }

  async #read(): Promise<LeaseRecord | undefined | string> {
    const response = await this.#request("GET", this.#path);
    if (isNotFound(response, this.#options.name)) return undefined;
    return recordOf(response.body) ?? responseMessage(`lease ${this.#options.name}`, response);
  }

  /** The step after a read. A leader without its Lease ends leading here: another candidate may have led before it creates the Lease. */
  #observe(record: LeaseRecord | undefined): LeaseStep {
    this.#state = leaseRead(this.#state, record, this.#clock());
    this.#update();
    return leaseStep(this.#state, this.#clock());
  }

  async #write(step: Extract<LeaseStep, { step: "write" }>, attempt = 1): Promise<boolean> {
    const sent = this.#clock();
    const { resourceVersion, transitions, acquires } = step;
    const time = microTime((this.#options.wallClock ?? Date.now)());
    const spec = {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.ceil(this.#state.times.durationMs / 1_000),
      renewTime: time,
      leaseTransitions: transitions,
      acquireTime: acquires ? time : this.#acquired,
    };
    const create = resourceVersion === undefined;
    const pending = this.#request(
      create ? "POST" : "PUT",
      create ? this.#collection : this.#path,
      this.#body(spec, resourceVersion),
    );
    const response = await pending.catch((error: unknown) => {
      // A write that broke may have succeeded, so the known version may be outdated.
      this.#state = leaseUncertain(this.#state);
      throw error;
    });
    const record = response.status < 300 ? recordOf(response.body) : undefined;
    if (record !== undefined) {
      this.#acquired = spec.acquireTime;
      this.#state = leaseWritten(this.#state, record, sent);
      return true;
    }
    this.#state = leaseUncertain(this.#state);
    // A creation is answered 404 where the namespace does not exist.
    const raced = response.status === 409 || (!create && isNotFound(response, this.#options.name));
    if (!raced) return this.#report(responseMessage(`lease ${this.#options.name}`, response));
    // Another candidate was faster, the Lease was deleted, or others have edited it: a leader must know at once.
    const found = await this.#read();
    if (typeof found === "string") return this.#report(found);
    const then = this.#observe(found);
    if (then.step === "read" || this.#stop.signal.aborted) return false;
    return attempt < ATTEMPTS
      ? this.#write(then, attempt + 1)
      : this.#report(responseMessage(`lease ${this.#options.name}`, response));
  }

  /** Calls back on changes of leadership. */
  #update(): void {
    clearTimeout(this.#expiry);
    const now = this.#clock();
    const leading = isLeader(this.#state, now) && !this.#stop.signal.aborted;
    if (leading && !this.#isActive) {
      this.#isActive = true;
      this.#callBack(() => (this.#isActive ? this.#options.onStartedLeading() : undefined));
    } else if (!leading) this.#stopLeading();
    const { heldSince, times } = this.#state;
    // Leading ends at the renew deadline even while a renewal hangs.
    if (leading && heldSince !== undefined)
      this.#expiry = setTimeout(
        () => this.#update(),
        Math.max(1, heldSince + times.renewDeadlineMs - now),
      ).unref();
  }

  #stopLeading(): void {
    clearTimeout(this.#expiry);
    if (!this.#isActive) return;
    this.#isActive = false;
    this.#callBack(this.#options.onStoppedLeading);
  }

  /** In sequence: onStartedLeading runs after the previous onStoppedLeading has finished. */
  #callBack(call: () => Promise<void> | void): void {
    this.#callbacks = this.#callbacks.then(call).catch((error: unknown) => {
      this.#report(errorMessage("leader election callback", error));
    });
  }

  /** Conditional on the version of the last renewal: a no-op if another candidate acquired the lease. */
  async #release(): Promise<void> {
    try {
      // After a renewal with unknown result the version must be read.
      const record = this.#state.observed?.record ?? (await this.#read());
      if (typeof record !== "object" || record.holder !== this.#options.identity) return;
      const spec = { holderIdentity: "", leaseDurationSeconds: 1, leaseTransitions: record.transitions };
      await this.#request("PUT", this.#path, this.#body(spec, record.resourceVersion));
    } catch (error) {
      this.#report(errorMessage("releasing the lease", error));
    }
  }

  async #request(method: string, path: string, body?: JsonObject): Promise<ApiResponse> {
    const timeoutMs = leaseTimeoutMs(this.#state.times);
    const sent = body === undefined ? { timeoutMs } : { body, timeoutMs };
    const response = await this.#options.client.request(method, path, sent);
    if (response.status < 300) this.#metadata = keptMetadata(response.body);
    return response;
  }

  #body(spec: JsonObject, resourceVersion: string | undefined): JsonObject {
    const { name, namespace } = this.#options;
    const version = resourceVersion === undefined ? { uid: undefined } : { resourceVersion };
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { ...this.#metadata, name, namespace, ...version },
      spec,
    };
  }

  #report(why: string): false {
    this.#options.onError?.(why);
    return false;
  }
}
