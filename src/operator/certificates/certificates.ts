import { randomUUID } from "node:crypto";
import {
  type KeyPair,
  type LivePair,
  makeCertificate,
  type OwnCertificate,
} from "../../admission/tls/certificate.ts";
import { errorMessage, isNotFound, responseMessage } from "../../cluster/client/api-response.ts";
import { BACKOFF, Backoff, type BackoffLimits } from "../../cluster/client/backoff.ts";
import type { Client } from "../../cluster/client/client.ts";
import { pathSegment } from "../../cluster/client/path-segment.ts";
import { pause } from "../../cluster/client/retry.ts";
import { FIELD_MANAGER } from "../../cluster/controller/planned-writes.ts";
import { isObject, type JsonObject, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { OWN_LABELS, OWN_NAMES } from "../../core/registration/names.ts";
import { type CertificatePlan, planCertificates, planStart, type Trust } from "./certificate-plan.ts";
import {
  authorityIn,
  bundleOf,
  type CertificateRecord,
  dataOf,
  EMPTY_RECORD,
  recordOf,
  unusable,
} from "./certificate-record.ts";
import { ServerClock } from "./server-clock.ts";

export interface CertificatesOptions {
  readonly client: Client;
  readonly namespace: string;
  /** @default usher */
  readonly service?: string;
  readonly log: Log;
  /** Milliseconds since 1970, for as long as the API server has not told its time. */
  readonly now?: () => number;
  readonly lookEveryMs?: number;
  /** Ends the attempts to begin. */
  readonly signal?: AbortSignal;
  readonly backoff?: BackoffLimits;
}

/** Replicas that start together meet here: each but one finds that another was faster. More often than this it is no race. */
const ATTEMPTS = 10;
const ATTEMPT_PAUSE_MS = 200;

/** Where the Secret was deleted, what is still served with is trusted no longer: one small read, often enough for that. */
const LOOK_EVERY_MS = 3_000;

/** How the API server names the Service when it calls. The others are what people use when they look themselves. */
export function serviceNames(service: string, namespace: string): string[] {
  return [
    `${service}.${namespace}.svc`,
    `${service}.${namespace}`,
    `${service}.${namespace}.svc.cluster.local`,
  ];
}

/**
 * Reads the certificate from the Secret, making it where there is none. Where the API server can't be reached or does not let us it goes
 * on trying, as with all else that is read at the start: whoever gives the rights back need not restart anything.
 */
export async function openCertificates(options: CertificatesOptions): Promise<Certificates> {
  const { log, namespace, signal, backoff: limits = BACKOFF } = options;
  const certificates = new Certificates(options);
  const backoff = new Backoff(Math.random, limits);
  for (;;) {
    try {
      await certificates.start();
      return certificates;
    } catch (error) {
      if (signal?.aborted === true) throw error;
      log.warn(
        { secret: `${namespace}/${OWN_NAMES.certificates}`, error: errorMessage("certificate", error) },
        "the certificate can't be read or made yet; trying again",
      );
      await pause(backoff.next(performance.now()), signal);
    }
  }
}

/** The certificate of all replicas, in one Secret. Each follows it, and the leader renews it. */
export class Certificates implements LivePair {
  readonly #options: CertificatesOptions;
  readonly #names: readonly string[];
  readonly #path: string;
  readonly #clock: ServerClock;
  readonly #users = new Set<(pair: KeyPair) => void>();
  #record: CertificateRecord = EMPTY_RECORD;
  #secret: JsonObject | undefined;
  /** Which reads were begun, and which of them was taken in last. */
  #begun = 0;
  #taken = 0;
  #serving: OwnCertificate | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CertificatesOptions) {
    this.#options = options;
    this.#clock = new ServerClock(options.now ?? Date.now);
    this.#names = serviceNames(options.service ?? OWN_NAMES.service, options.namespace);
    const namespace = pathSegment("namespace", options.namespace);
    this.#path = `/api/v1/namespaces/${namespace}/secrets/${OWN_NAMES.certificates}`;
  }

  get current(): KeyPair {
    if (this.#serving === undefined) throw new Error("the certificate was not read yet");
    return this.#serving;
  }

  /**
   * What must be trusted: PEM. Also what this replica serves with, until it has changed over. `undefined` where the Secret holds nothing
   * to serve with: whatever is trusted now is then better than anything that could be said here.
   */
  get bundle(): string | undefined {
    const { current, next, previous } = this.#record;
    if (!this.#isUsable(current)) return undefined;
    const own = this.ownAuthority;
    const sound = { current, next: this.#isUsable(next) ? next : undefined, previous };
    return bundleOf(sound, ...(own === undefined ? [] : [own]));
  }

  /** The authority of what this replica serves with, as long as that can be served with. */
  get ownAuthority(): string | undefined {
    return this.#isUsable(this.#serving) ? authorityIn(this.#serving.ca) : undefined;
  }

  /** The authority that must be trusted before the next pair is served with. */
  get nextAuthority(): string | undefined {
    const { next } = this.#record;
    return this.#isUsable(next) ? authorityIn(next.ca) : undefined;
  }

  async start(): Promise<void> {
    await this.#read();
    await this.#settle();
    this.#use();
    this.#timer = setInterval(() => void this.look(), this.#options.lookEveryMs ?? LOOK_EVERY_MS);
    this.#timer.unref();
  }

  follow = (use: (pair: KeyPair) => void): { readonly stop: () => void } => {
    this.#users.add(use);
    return { stop: () => void this.#users.delete(use) };
  };

  stop(): void {
    clearInterval(this.#timer);
    this.#users.clear();
  }

  /** Looks whether there is a new one. What can't be read or used changes nothing: what is served goes on. */
  async look(): Promise<void> {
    try {
      await this.#read();
      this.#use();
    } catch (error) {
      this.#options.log.warn(
        { error: errorMessage("certificate", error) },
        "can't look for a new certificate, or can't use it",
      );
    }
  }

  /**
   * The leader's: takes one step, if one is due. Only one, because what is trusted was told before it. What it made is served from the
   * next look on, so that it can be published before; where somebody else was faster there is a next time.
   */
  async keep(trust: Trust): Promise<void> {
    await this.#read();
    const plan = planCertificates(this.#situation(), trust);
    if (plan.step !== "nothing") await this.#carryOut(plan);
  }

  #situation() {
    return { record: this.#record, names: this.#names, now: this.#clock.now() };
  }

  #isUsable(pair: OwnCertificate | undefined): pair is OwnCertificate {
    return pair !== undefined && unusable(pair, this.#names, this.#clock.now()) === undefined;
  }

  /** Until there is one to serve with, anew where another replica was faster. */
  async #settle(): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const plan = planStart(this.#situation());
      if (plan.step === "nothing") return;
      if (await this.#carryOut(plan)) continue;
      await pause(ATTEMPT_PAUSE_MS * Math.random());
      await this.#read();
    }
    throw new Error(`${this.#path}: others change it all the time`);
  }

  /** False where the Secret is no longer what the plan rests on. */
  async #carryOut(plan: Exclude<CertificatePlan, { step: "nothing" }>): Promise<boolean> {
    // A look may come while the pair is made, and bring another Secret: this step rests on the one that was planned on.
    const secret = this.#secret;
    const { current, next, previous } = this.#record;
    const make = () => makeCertificate(this.#names, this.#clock.now());
    const record = { current, next, previous };
    if (plan.step === "replace")
      Object.assign(record, { current: await make(), next: undefined, previous: authorityIn(current?.ca) });
    if (plan.step === "stage") record.next = await make();
    if (plan.step === "promote")
      Object.assign(record, { current: next, next: undefined, previous: current?.ca });
    if (plan.step === "forget") record[plan.what] = undefined;
    if (!(await this.#write(record, secret))) return false;
    const why = "why" in plan ? { why: plan.why } : {};
    this.#options.log.info(
      { secret: OWN_NAMES.certificates, step: plan.step, ...why },
      "certificate renewed",
    );
    return true;
  }

  async #read(): Promise<void> {
    this.#begun += 1;
    const turn = this.#begun;
    const answer = await this.#options.client.request("GET", this.#path);
    this.#clock.hear(answer.headers);
    const absent = isNotFound(answer, OWN_NAMES.certificates);
    if (!absent && answer.status !== 200) throw new Error(responseMessage("reading the certificate", answer));
    this.#take(absent ? undefined : answer.body, turn);
  }

  /** What was asked for later and answered earlier knows better. */
  #take(secret: unknown, turn: number): void {
    if (turn < this.#taken) return;
    this.#taken = turn;
    this.#secret = isObject(secret) ? secret : undefined;
    this.#record = recordOf(this.#secret);
  }

  async #write(record: CertificateRecord, secret: JsonObject | undefined): Promise<boolean> {
    const { namespace, client } = this.#options;
    const data = dataOf(record);
    const answer =
      secret === undefined
        ? // A name of its own for each try: where another one was faster it owns these fields, and this is a conflict.
          await client.request("PATCH", `${this.#path}?fieldManager=${FIELD_MANAGER}-${randomUUID()}`, {
            contentType: "application/apply-patch+yaml",
            body: {
              apiVersion: "v1",
              kind: "Secret",
              metadata: { name: OWN_NAMES.certificates, namespace, labels: OWN_LABELS },
              type: "kubernetes.io/tls",
              data,
            },
          })
        : await client.request("PUT", `${this.#path}?fieldManager=${FIELD_MANAGER}`, {
            body: { ...secret, data },
          });
    if (answer.status === 409 || isNotFound(answer, OWN_NAMES.certificates)) return false;
    if (answer.status >= 300) throw new Error(responseMessage("writing the certificate", answer));
    // Any read that is still under way may have been answered before this.
    this.#begun += 1;
    this.#take(answer.body, this.#begun);
    return true;
  }

  #use(): void {
    const { current } = this.#record;
    if (!this.#isUsable(current)) return;
    if (this.#serving?.cert === current.cert && this.#serving.key === current.key) return;
    const swapped = this.#serving !== undefined;
    // First the users: one that fails goes on with the old pair, and is told again at the next look.
    for (const use of this.#users) use(current);
    this.#serving = current;
    const version = stringAt(this.#secret, "metadata", "resourceVersion");
    if (swapped) this.#options.log.info({ secret: OWN_NAMES.certificates, version }, "certificate swapped");
  }
}
