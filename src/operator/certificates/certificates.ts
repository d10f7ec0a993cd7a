import {
  type IssueCertificate,
  type KeyPair,
  type LivePair,
  makeCertificate,
  type OwnCertificate,
} from "../../admission/tls/certificate.ts";
import { errorMessage } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { BACKOFF, Backoff, type BackoffLimits, pause } from "../../cluster/client/retry.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { serviceNames } from "../../core/registration/certificates.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import {
  type CertificatePlan,
  type CertificateState,
  planCertificates,
  planStart,
  recordAfter,
  type Trust,
} from "./certificate-plan.ts";
import { authorityIn, bundleOf, type CertificateRecord, unusable } from "./certificate-record.ts";
import { CertificateSecret } from "./certificate-secret.ts";
import { acceptsToken } from "./path-tokens.ts";
import { READ_EVERY_MS } from "./repeated-read.ts";

interface CertificatesOptions {
  readonly client: Client;
  readonly namespace: string;
  /** @default usher */
  readonly service?: string;
  readonly log: Log;
  /** The owner of the Secret, as an ownerReference. */
  readonly owner?: JsonObject | undefined;
  /** Milliseconds since 1970, until the API server has sent its time. */
  readonly now?: () => number;
  readonly refreshEveryMs?: number;
  /** Ends the attempts to start. */
  readonly signal?: AbortSignal;
  readonly backoff?: BackoffLimits;
  /** Issues a pair for these names, valid at this time. @default makeCertificate */
  readonly issue?: IssueCertificate | undefined;
}

/** Replicas that start together conflict: all but one find that another was faster. More conflicts than this are not a race. */
const ATTEMPTS = 10;
const ATTEMPT_PAUSE_MS = 200;

/**
 * Reads the certificate from the Secret, or issues one if there is none. Retries while the API server can't be reached
 * or denies access, like all reads at start: granting the permissions needs no restart.
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
        "failed to read or create the certificate, retrying",
      );
      await pause(backoff.next(performance.now()), signal);
    }
  }
}

/** The certificate of all replicas, and the tokens of the webhooks' paths, in one Secret. Each replica follows it, the leader renews it. */
export class Certificates implements LivePair {
  readonly #options: CertificatesOptions;
  readonly #names: readonly string[];
  readonly #secret: CertificateSecret;
  readonly #users = new Set<(pair: KeyPair) => void>();
  /** The rotation whose current token a client may have seen. */
  #shown: number | undefined;
  #serving: OwnCertificate | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: CertificatesOptions) {
    const { client, namespace, service = OWN_NAMES.service, now = Date.now, owner } = options;
    this.#options = options;
    this.#names = serviceNames(service, namespace);
    this.#secret = new CertificateSecret(client, namespace, now, owner);
  }

  get current(): KeyPair {
    if (this.#serving === undefined) throw new Error("the certificate was not read yet");
    return this.#serving;
  }

  /**
   * The CAs to trust: PEM. Includes that of this replica's certificate until it has switched to the next. `undefined`
   * if the Secret has no usable certificate: then the published bundle is kept.
   */
  get bundle(): string | undefined {
    const { current, next, previous } = this.#record;
    if (!this.#isUsable(current)) return undefined;
    const own = this.ownAuthority;
    const sound = { current, next: this.#isUsable(next) ? next : undefined, previous };
    return bundleOf(sound, ...(own === undefined ? [] : [own]));
  }

  /** The CA of the certificate in use, as long as it is valid. */
  get ownAuthority(): string | undefined {
    return this.#isUsable(this.#serving) ? authorityIn(this.#serving.ca) : undefined;
  }

  /** The CA that must be trusted before the next pair is used. */
  get nextAuthority(): string | undefined {
    const { next } = this.#record;
    return this.#isUsable(next) ? authorityIn(next.ca) : undefined;
  }

  /** The first segment of the webhooks' paths; `undefined` while the Secret has none. */
  get pathToken(): string | undefined {
    return this.#record.paths?.current;
  }

  /** Whether a request with this path segment comes from an API server. */
  readonly acceptsToken = (token: string | undefined): boolean =>
    acceptsToken(this.#record.paths, token, this.#secret.clock.now());

  /** A client may have seen the published path token: the leader replaces it. */
  readonly pathsShown = (): void => {
    this.#shown = this.#record.paths?.rotatedAt;
  };

  async start(): Promise<void> {
    await this.#secret.read();
    await this.#ensure();
    this.#use();
    this.#timer = setInterval(() => void this.refresh(), this.#options.refreshEveryMs ?? READ_EVERY_MS);
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

  /** Reads the Secret again. An unreadable or unusable Secret changes nothing: the certificate in use stays. */
  async refresh(): Promise<void> {
    try {
      await this.#secret.read();
      this.#use();
    } catch (error) {
      this.#options.log.warn(
        { error: errorMessage("certificate", error) },
        "failed to reload the certificate",
      );
    }
  }

  /**
   * The leader's part: makes one change to the Secret, if one is due. Only one, because `trust` was determined before
   * it. A new pair is used from the next refresh on, so that it can be published before; after a conflict the next call
   * plans again.
   */
  async reconcile(trust: Trust): Promise<void> {
    await this.#secret.read();
    const plan = planCertificates(this.#state(), trust);
    if (plan.step !== "nothing") await this.#carryOut(plan);
  }

  get #record(): CertificateRecord {
    return this.#secret.state.record;
  }

  #state(): CertificateState {
    const pathsShown = this.#shown !== undefined && this.#shown === this.#record.paths?.rotatedAt;
    return { record: this.#record, names: this.#names, now: this.#secret.clock.now(), pathsShown };
  }

  #isUsable(pair: OwnCertificate | undefined): pair is OwnCertificate {
    return pair !== undefined && unusable(pair, this.#names, this.#secret.clock.now()) === undefined;
  }

  /** Until the Secret holds everything that serving needs; repeats if another replica was faster. */
  async #ensure(): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const plan = planStart(this.#state());
      if (plan.step === "nothing") return;
      if (await this.#carryOut(plan)) continue;
      await pause(ATTEMPT_PAUSE_MS * Math.random());
      await this.#secret.read();
    }
    throw new Error(`${this.#secret.path}: too many concurrent writes`);
  }

  /** False if the Secret is not the planned one any more. */
  async #carryOut(plan: Exclude<CertificatePlan, { step: "nothing" }>): Promise<boolean> {
    // A refresh may bring another Secret while the pair is issued: this step is based on the planned one.
    const { object, record } = this.#secret.state;
    const now = this.#secret.clock.now();
    const { issue = makeCertificate } = this.#options;
    const after = await recordAfter(record, plan, () => issue(this.#names, now), now);
    if (!(await this.#secret.write(after, object))) return false;
    const why = "why" in plan ? { why: plan.why } : {};
    const message = plan.step === "rotate-paths" ? "webhook paths rotated" : "certificate renewed";
    this.#options.log.info({ secret: OWN_NAMES.certificates, step: plan.step, ...why }, message);
    return true;
  }

  #use(): void {
    const { current } = this.#record;
    if (!this.#isUsable(current)) return;
    if (this.#serving?.cert === current.cert && this.#serving.key === current.key) return;
    const isSwap = this.#serving !== undefined;
    // Users first: one that fails keeps the old pair, and gets the new one again with the next refresh.
    for (const use of this.#users) use(current);
    this.#serving = current;
    const { resourceVersion } = this.#secret;
    if (isSwap)
      this.#options.log.info(
        { secret: OWN_NAMES.certificates, version: resourceVersion },
        "certificate reloaded",
      );
  }
}
