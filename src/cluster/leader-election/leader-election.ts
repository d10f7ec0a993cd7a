import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { errorMessage, isNotFound, responseMessage } from "../client/api-response.ts";
import type { ApiResponse, Client } from "../client/client.ts";
import { microTime } from "../client/micro-time.ts";
import { pathSegment } from "../client/path-segment.ts";
import { pause } from "../client/retry.ts";
import {
  LEASE_TIMES,
  type LeaseRecord,
  type LeaseState,
  type LeaseTimes,
  leads,
  leaseAnswerMs,
  leaseRead,
  leaseStep,
  leaseUncertain,
  leaseWait,
  leaseWritten,
  newLeaseState,
} from "./lease-state.ts";

export interface LeaderElectionOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly name: string;
  /** Unique among all candidates: a pod's name. */
  readonly identity: string;
  /** Called when leading begins. */
  readonly onStartedLeading: () => void;
  /** Called when it ends; what is awaited here comes before the lease is released. */
  readonly onStoppedLeading: () => Promise<void> | void;
  /** Why a look or a renewal failed, for the log. */
  readonly onError?: (why: string) => void;
  readonly times?: LeaseTimes;
  /** Milliseconds, any origin. */
  readonly clock?: () => number;
  /** For people who read the LeaderElection. */
  readonly wallClock?: () => number;
  readonly random?: () => number;
}

/**
 * One candidate for leading. Holds a coordination.k8s.io/v1 LeaderElection, tells when leading begins and ends, and lets go when it is stopped,
 * so that a successor need not wait for the lease to run out.
 */
export class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #collection: string;
  readonly #path: string;
  readonly #clock: () => number;
  readonly #stop = new AbortController();
  #state: LeaseState;
  #acting = false;
  #told: Promise<void> = Promise.resolve();
  #acquired = "";
  #expiry: NodeJS.Timeout | undefined;
  #loop: Promise<void> = Promise.resolve();

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
    const namespace = pathSegment("namespace", options.namespace);
    this.#collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    this.#path = `${this.#collection}/${pathSegment("name", options.name)}`;
    this.#state = newLeaseState(options.identity, options.times ?? LEASE_TIMES);
  }

  /** To be asked before every write: true only while nobody else can lead. */
  get leading(): boolean {
    return this.#acting && leads(this.#state, this.#clock());
  }

  /** Who holds it, as far as is known. */
  get holder(): string | undefined {
    return this.#state.seen?.record?.holder;
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Ends leading, waits until what was under way has ended, and releases the lease. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    const held = this.#state.heldSince !== undefined;
    this.#end();
    await this.#told;
    if (held) await this.#release();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const began = this.#clock();
      const fine = await this.#step();
      this.#follow();
      const now = this.#clock();
      const random = this.#options.random ?? Math.random;
      const { retryMs } = this.#state.times;
      // Candidates spread, so that they do not all write at one moment. Who has waited for an answer in vain has waited already.
      const again = began + retryMs * (0.75 + 0.5 * random());
      await pause(fine ? leaseWait(this.#state, now) : Math.max(0, again - now), signal);
    }
  }

  /** One look or one write. False where it failed. */
  async #step(): Promise<boolean> {
    const now = this.#clock();
    const next = leaseStep(this.#state, now);
    try {
      if (next.step === "read") {
        const record = await this.#read();
        if (typeof record === "string") return this.#onError(record);
        this.#state = leaseRead(this.#state, record, this.#clock());
        const then = leaseStep(this.#state, this.#clock());
        // What a look shows to be free is taken without a pause.
        return then.step === "read" || (await this.#write(then));
      }
      return await this.#write(next);
    } catch (error) {
      // Kept connections die together, and there is no time to find each of them dead.
      this.#options.client.closeIdleConnections?.();
      return this.#onError(errorMessage(`lease ${this.#options.name}`, error));
    }
  }

  async #read(): Promise<LeaseRecord | undefined | string> {
    const answer = await this.#ask("GET", this.#path);
    if (isNotFound(answer, this.#options.name)) return undefined;
    return recordOf(answer.body) ?? responseMessage(`lease ${this.#options.name}`, answer);
  }

  async #write(step: Extract<ReturnType<typeof leaseStep>, { step: "write" }>): Promise<boolean> {
    const sent = this.#clock();
    const { resourceVersion, transitions, takeover } = step;
    const moment = microTime((this.#options.wallClock ?? Date.now)());
    const spec = {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.ceil(this.#state.times.durationMs / 1_000),
      renewTime: moment,
      leaseTransitions: transitions,
      acquireTime: takeover ? moment : this.#acquired,
    };
    const create = resourceVersion === undefined;
    const asked = this.#ask(
      create ? "POST" : "PUT",
      create ? this.#collection : this.#path,
      this.#body(spec, resourceVersion),
    );
    const answer = await asked.catch((error: unknown) => {
      // A write that broke may have been taken: the version that we know may be old. A look that broke changes nothing of that.
      this.#state = leaseUncertain(this.#state);
      throw error;
    });
    const record = answer.status < 300 ? recordOf(answer.body) : undefined;
    if (record !== undefined) {
      this.#acquired = spec.acquireTime;
      this.#state = leaseWritten(this.#state, record, sent);
      return true;
    }
    // Another one was faster, or it was deleted: look who leads.
    this.#state = leaseUncertain(this.#state);
    const raced = answer.status === 409 || isNotFound(answer, this.#options.name);
    return raced ? false : this.#onError(responseMessage(`lease ${this.#options.name}`, answer));
  }

  /** Brings what others were told in line with what is the case. */
  #follow(): void {
    clearTimeout(this.#expiry);
    const now = this.#clock();
    const leading = leads(this.#state, now) && !this.#stop.signal.aborted;
    if (leading && !this.#acting) {
      this.#acting = true;
      this.#tell(() => (this.#acting ? this.#options.onStartedLeading() : undefined));
    } else if (!leading) this.#end();
    const { heldSince, times } = this.#state;
    // A renewal that hangs must not keep us acting: the end comes by itself.
    if (leading && heldSince !== undefined)
      this.#expiry = setTimeout(() => this.#follow(), Math.max(1, heldSince + times.actMs - now)).unref();
  }

  #end(): void {
    clearTimeout(this.#expiry);
    if (!this.#acting) return;
    this.#acting = false;
    this.#tell(this.#options.onStoppedLeading);
  }

  /** One after the other: who begins anew must find the end of the last time over. */
  #tell(call: () => Promise<void> | void): void {
    this.#told = this.#told.then(call).catch((error: unknown) => {
      this.#onError(errorMessage("beginning or ending to lead", error));
    });
  }

  /** With the version of our last renewal: where somebody has taken over already, this changes nothing. */
  async #release(): Promise<void> {
    try {
      // After a renewal whose end was not seen the version is not known.
      const record = this.#state.seen?.record ?? (await this.#read());
      if (typeof record !== "object" || record.holder !== this.#options.identity) return;
      const spec = { holderIdentity: "", leaseDurationSeconds: 1, leaseTransitions: record.transitions };
      await this.#ask("PUT", this.#path, this.#body(spec, record.resourceVersion));
    } catch (error) {
      this.#onError(errorMessage("releasing the lease", error));
    }
  }

  #ask(method: string, path: string, body?: JsonObject): Promise<ApiResponse> {
    const timeoutMs = leaseAnswerMs(this.#state.times);
    return this.#options.client.request(
      method,
      path,
      body === undefined ? { timeoutMs } : { body, timeoutMs },
    );
  }

  #body(spec: JsonObject, resourceVersion: string | undefined): JsonObject {
    const { name, namespace } = this.#options;
    const version = resourceVersion === undefined ? {} : { resourceVersion };
    return {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name, namespace, ...version },
      spec,
    };
  }

  #onError(why: string): false {
    this.#options.onError?.(why);
    return false;
  }
}

function recordOf(body: Json | undefined): LeaseRecord | undefined {
  const resourceVersion = stringAt(body, "metadata", "resourceVersion");
  if (resourceVersion === undefined || !isObject(body)) return undefined;
  const seconds = at(body, "spec", "leaseDurationSeconds");
  const transitions = at(body, "spec", "leaseTransitions");
  return {
    resourceVersion,
    holder: stringAt(body, "spec", "holderIdentity") ?? "",
    durationMs: typeof seconds === "number" ? seconds * 1_000 : LEASE_TIMES.durationMs,
    transitions: typeof transitions === "number" ? transitions : 0,
  };
}
