import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { certificatesOf, soundBundle } from "../../admission/tls/bundle.ts";
import type { KeyPair, LivePair } from "../../admission/tls/certificate.ts";
import { type CertificateFiles, readKeyPair, watchKeyPair } from "../../admission/tls/certificate-files.ts";
import { BACKOFF, Backoff, pause } from "../../cluster/client/retry.ts";
import { factsOf, type Log } from "../../core/log.ts";
import { serviceNames } from "../../core/registration/certificates.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { acceptedBy, accepts } from "./acceptance.ts";
import { acceptsToken, type PathTokens, TRUST_MS, tokensDue, tokensText } from "./path-tokens.ts";
import { PATHS_ANNOTATION, type PublishedWebhooks } from "./published-webhooks.ts";
import { isSwapDue } from "./swap-plan.ts";
import type { InjectedBundle, WebhookCertificates } from "./webhook-certificates.ts";

interface MountedOptions {
  readonly files: CertificateFiles;
  readonly published: PublishedWebhooks;
  readonly namespace: string;
  /** Which component writes `caBundle`. */
  readonly writer: "usher" | "injector";
  readonly log: Log;
  /** @default usher */
  readonly service?: string;
  readonly pollMs?: number;
  /** How long API servers may take to see a new bundle. @default 2 minutes */
  readonly trustMs?: number;
  /** How long replicas may take to read a new path token. @default 8 s */
  readonly announceMs?: number;
  /** Ends the attempts to start. */
  readonly signal?: AbortSignal;
}

/** How long other replicas may take to serve the next certificate: a kubelet updates a mounted Secret within two minutes. */
const RETIRE_MS = 10 * 60_000;

/** Every replica has read a new path token by then. */
const ANNOUNCE_MS = 8_000;

/** Reads the mounted certificate; retries while it is unusable, because a corrected Secret needs no restart. */
export async function openMounted(options: MountedOptions): Promise<MountedCertificates> {
  const backoff = new Backoff(Math.random, BACKOFF);
  for (;;) {
    try {
      const pair = await readKeyPair(options.files);
      return new MountedCertificates(options, pair);
    } catch (error) {
      if (options.signal?.aborted === true) throw error;
      options.log.warn(factsOf(error), "failed to read the mounted certificate, retrying");
      await pause(backoff.next(performance.now()), options.signal);
    }
  }
}

/**
 * The certificate of a Secret that others write, mounted into the pod. Every replica serves a new one once API servers
 * trust it; with `writer` usher, the leader publishes its CA before. The path tokens are in the webhook configurations.
 */
class MountedCertificates implements LivePair, WebhookCertificates {
  readonly #options: MountedOptions;
  readonly #name: string;
  readonly #users = new Set<(pair: KeyPair) => void>();
  readonly #watch: { readonly stop: () => void };
  #serving: KeyPair;
  #offered: KeyPair;
  #authority: string | undefined;
  /** Published CAs that are not in the Secret: since when that was observed here. */
  #others: ReadonlyMap<string, number> = new Map();
  #planned: PathTokens | undefined;
  /** The rotation whose current token a client may have seen. */
  #shown: number | undefined;
  #reported = "";

  constructor(options: MountedOptions, pair: KeyPair) {
    const { files, namespace, service = OWN_NAMES.service, log, published, pollMs } = options;
    this.#options = options;
    [this.#name = ""] = serviceNames(service, namespace);
    this.#serving = pair;
    this.#offered = pair;
    this.#watch = watchKeyPair({
      files,
      current: pair,
      use: (next) => {
        this.#offered = next;
      },
      log,
      pollMs,
    });
    published.onRead(() => this.refresh());
  }

  get current(): KeyPair {
    return this.#serving;
  }

  follow = (use: (pair: KeyPair) => void): { readonly stop: () => void } => {
    this.#users.add(use);
    return { stop: () => void this.#users.delete(use) };
  };

  stop(): void {
    this.#watch.stop();
    this.#users.clear();
  }

  /**
   * The bundle that usher publishes: the CAs of the Secret, and previously published ones as long as a replica may
   * serve with them. `undefined` if an injector writes the bundle, or the CAs of the Secret do not verify its
   * certificate.
   */
  get bundle(): string | undefined {
    const authority = this.#authority;
    if (this.#options.writer !== "usher" || authority === undefined) return undefined;
    const recent = [...this.#others].filter(([, since]) => performance.now() - since < RETIRE_MS);
    return soundBundle(authority, this.#authoritiesOf(this.#serving), ...recent.map(([one]) => one));
  }

  /** The part of the published bundles that a pair is trusted by. */
  #authoritiesOf({ cert }: KeyPair): string {
    const bundles = this.#options.published.bundles ?? [];
    return soundBundle(...bundles.flatMap((one) => acceptedBy(one, cert, this.#name, this.#now())));
  }

  readonly ownAuthority = undefined;
  readonly nextAuthority = undefined;

  get injected(): InjectedBundle | undefined {
    if (this.#options.writer === "usher") return undefined;
    const trusts = (text: string) => accepts(text, this.#serving.cert, this.#name, this.#now());
    const last = this.#options.published.lastBundle;
    return {
      last: last === undefined || !trusts(last) ? undefined : Buffer.from(last).toString("base64"),
      accepts: (caBundle) => trusts(Buffer.from(caBundle, "base64").toString("utf8")),
    };
  }

  get pathToken(): string | undefined {
    return this.#tokens?.current;
  }

  get annotations(): Readonly<Record<string, string>> {
    return this.#tokens === undefined ? {} : { [PATHS_ANNOTATION]: tokensText(this.#tokens) };
  }

  /** Whether every replica knows the tokens. */
  get announced(): boolean {
    const tokens = this.#options.published.tokens;
    return (
      tokens !== undefined && this.#now() - tokens.rotatedAt >= (this.#options.announceMs ?? ANNOUNCE_MS)
    );
  }

  readonly acceptsToken = (token: string | undefined): boolean =>
    [this.#options.published.tokens, this.#planned].some((one) => acceptsToken(one, token, this.#now()));

  readonly pathsShown = (): void => {
    this.#shown = this.#tokens?.rotatedAt;
  };

  /** The leader's part: the first path tokens, and those that are due. */
  async reconcile(): Promise<void> {
    const { published } = this.#options;
    if (published.bundles === undefined) return;
    const now = this.#now();
    const tokens = this.#tokens;
    const shown = this.#shown !== undefined && this.#shown === tokens?.rotatedAt;
    this.#planned = tokensDue(tokens, now, shown) ?? this.#planned;
  }

  /** Reads the CAs of the Secret, and serves a new pair if it is due. */
  async refresh(): Promise<void> {
    const { published, files, log, trustMs = TRUST_MS } = this.#options;
    const { bundles, publishedForMs } = published;
    await this.#readAuthority(join(dirname(files.certFile), "ca.crt"));
    if (this.#offered === this.#serving) return;
    const chains = { served: this.#serving.cert, offered: this.#offered.cert };
    if (!isSwapDue({ ...chains, bundles, publishedForMs, trustMs, name: this.#name, now: this.#now() }))
      return;
    const next = this.#offered;
    // Users first: one that fails keeps the old pair.
    for (const use of this.#users) use(next);
    this.#serving = next;
    log.info({}, "serving the new certificate");
  }

  async #readAuthority(file: string): Promise<void> {
    if (this.#options.writer !== "usher") return;
    const text = await readFile(file, "utf8").catch(() => "");
    const sound = soundBundle(text);
    const trusted = accepts(sound, this.#offered.cert, this.#name, this.#now());
    this.#authority = trusted ? sound : undefined;
    const published = certificatesOf(this.#options.published.bundles ?? []);
    this.#others = new Map(
      published
        .filter((one) => !sound.includes(one))
        .map((one) => [one, this.#others.get(one) ?? performance.now()]),
    );
    const problem = trusted
      ? ""
      : sound === ""
        ? `${file} holds no certificate in PEM form`
        : `the authorities in ${file} do not make ${this.#options.files.certFile} valid for ${this.#name}`;
    if (problem !== "" && problem !== this.#reported)
      this.#options.log.error({ error: problem }, "the bundle of the webhook configurations is kept");
    this.#reported = problem;
  }

  get #tokens(): PathTokens | undefined {
    const { tokens } = this.#options.published;
    const planned = this.#planned;
    if (planned === undefined || tokens === undefined) return planned ?? tokens;
    return planned.rotatedAt > tokens.rotatedAt ? planned : tokens;
  }

  #now(): number {
    return this.#options.published.now();
  }
}
