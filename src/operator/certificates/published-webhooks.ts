import { type AcceptsToken, PATH_TOKEN } from "../../admission/review/routes.ts";
import { isNotFound, StatusError } from "../../cluster/client/api-response.ts";
import type { Client } from "../../cluster/client/client.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { DeduplicatedLog } from "../deduplicated-log.ts";
import { accepts } from "./acceptance.ts";
import { isOneOf, type PathTokens, parseTokens, TRUST_MS } from "./path-tokens.ts";
import { READ_MS, RepeatedRead } from "./repeated-read.ts";
import { ServerClock } from "./server-clock.ts";

/**
 * The path tokens, on both webhook configurations, if no Secret of usher holds them: a reader of one configuration
 * knows the paths anyway.
 */
export const PATHS_ANNOTATION = "usher.dev/webhook-paths";

const COLLECTIONS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
const OWN_OBJECTS = COLLECTIONS.map((one) => webhooksPath(one, OWN_NAMES.webhooks));

interface PublishedOptions {
  readonly client: Client;
  readonly namespace: string;
  readonly log: Log;
  /** @default usher */
  readonly service?: string;
  /** The paths of the objects that API servers read: webhook configurations and APIServices. @default usher's two */
  readonly objects?: readonly string[];
  readonly pollMs?: number;
  /** Milliseconds since 1970, until the API server has sent its time. */
  readonly now?: () => number;
}

/** The published configuration of usher, or of an operand: every replica reads it, with permission to get these objects. */
export class PublishedWebhooks {
  readonly #options: PublishedOptions;
  readonly #deduplicated: DeduplicatedLog;
  readonly #clock: ServerClock;
  readonly #listeners = new Set<() => unknown>();
  readonly #reads: RepeatedRead;
  #entries: readonly JsonObject[] | undefined;
  #bundles: { readonly texts: readonly string[]; readonly since: number } | undefined;
  #tokens: PathTokens | undefined;
  /** Tokens in the paths of entries, and when each was last seen there. */
  readonly #named = new Map<string, number>();
  #lastBundle: string | undefined;

  constructor(options: PublishedOptions) {
    this.#options = options;
    this.#deduplicated = new DeduplicatedLog(options.log, () => performance.now());
    this.#clock = new ServerClock(options.now ?? Date.now);
    this.#reads = new RepeatedRead(() => this.#read(), options);
  }

  /** By the API server's clock, which judges certificates. */
  now(): number {
    return this.#clock.now();
  }

  /** The bundles of usher's entries as PEM, each once; empty if there is no entry, `undefined` while that is unknown. */
  get bundles(): readonly string[] | undefined {
    return this.#bundles?.texts;
  }

  /** Since when these are the bundles. */
  get publishedForMs(): number {
    return this.#bundles === undefined ? 0 : performance.now() - this.#bundles.since;
  }

  /** The last seen tokens: they outlive a configuration that is deleted. */
  get tokens(): PathTokens | undefined {
    return this.#tokens;
  }

  /** As PEM. It outlives its configuration, too. */
  get lastBundle(): string | undefined {
    return this.#lastBundle;
  }

  /**
   * Whether an entry has this token in its path, or had it recently. An unknown one may have just been applied, and is
   * looked up.
   */
  readonly acceptsToken: AcceptsToken = (token) => {
    if (token === undefined || isOneOf(this.#named.keys(), token)) return token !== undefined;
    return this.#reads.soon().then(() => isOneOf(this.#named.keys(), token));
  };

  /** Whether API servers accept a certificate; `undefined` while that is unknown. Without a published entry they do. */
  trusts(chain: string): boolean | undefined {
    const { service = OWN_NAMES.service, namespace } = this.#options;
    return this.bundles?.every((bundle) => accepts(bundle, chain, `${service}.${namespace}.svc`, this.now()));
  }

  onRead(listener: () => unknown): void {
    this.#listeners.add(listener);
  }

  start(): Promise<void> {
    return this.#reads.start();
  }

  stop(): void {
    this.#reads.stop();
    this.#listeners.clear();
  }

  /** Reads now. @visibleForTesting */
  read(): Promise<void> {
    return this.#reads.now();
  }

  /** An unreadable configuration changes nothing. */
  async #read(): Promise<void> {
    try {
      const found = await Promise.all((this.#options.objects ?? OWN_OBJECTS).map((path) => this.#get(path)));
      this.#deduplicated.succeeded("published webhooks");
      this.#see(found.filter((one) => one !== undefined));
    } catch (error) {
      this.#deduplicated.failed(
        "published webhooks",
        error,
        "failed to read the webhook configurations, retrying",
      );
      // A replica without permission to read them must still serve.
      if (error instanceof StatusError && error.status === 403) this.#see([]);
    }
    for (const listener of this.#listeners) await listener();
  }

  async #get(path: string): Promise<JsonObject | undefined> {
    const answer = await this.#options.client.request("GET", path, { timeoutMs: READ_MS });
    this.#clock.observe(answer.headers);
    if (isNotFound(answer, path.slice(path.lastIndexOf("/") + 1))) return undefined;
    if (answer.status !== 200 || !isObject(answer.body))
      throw new StatusError("reading a webhook configuration", answer);
    return answer.body;
  }

  #see(found: readonly JsonObject[]): void {
    this.#entries = found.flatMap(entriesOf).filter((one) => this.#isOwn(one));
    this.#remember(this.#entries.flatMap((one) => tokenOf(one) ?? []));
    // An entry with a URL is called by another name.
    const called = this.#entries.filter((one) => at(one, "clientConfig", "service") !== undefined);
    const texts = [...new Set(called.map(bundleOf))].sort();
    const same = this.#bundles !== undefined && this.#bundles.texts.join() === texts.join();
    if (!same) this.#bundles = { texts, since: performance.now() };
    this.#lastBundle = texts.find((text) => text !== "") ?? this.#lastBundle;
    const tokens = found.flatMap(
      (one) => parseTokens(stringAt(one, "metadata", "annotations", PATHS_ANNOTATION)) ?? [],
    );
    for (const one of tokens)
      if (this.#tokens === undefined || one.rotatedAt > this.#tokens.rotatedAt) this.#tokens = one;
  }

  /** An API server may still use a token that is no longer published. */
  #remember(tokens: readonly string[]): void {
    const now = performance.now();
    for (const token of tokens) this.#named.set(token, now);
    for (const [token, seen] of this.#named) if (now - seen > TRUST_MS) this.#named.delete(token);
  }

  /** Entries of another owner with the same name lead elsewhere. */
  #isOwn(entry: Json): entry is JsonObject {
    const { service = OWN_NAMES.service, namespace } = this.#options;
    const target = at(entry, "clientConfig", "service");
    return (
      isObject(entry) &&
      (target === undefined ||
        (stringAt(target, "name") === service && stringAt(target, "namespace") === namespace))
    );
  }
}

export function webhooksPath(collection: string, name: string): string {
  return `/apis/admissionregistration.k8s.io/v1/${collection}/${name}`;
}

/** An APIService names its backend in its spec, like an entry of a webhook configuration. */
function entriesOf(object: JsonObject): readonly Json[] {
  const { spec } = object;
  return spec === undefined ? listAt(object, "webhooks") : [{ clientConfig: spec }];
}

function bundleOf(entry: JsonObject): string {
  return Buffer.from(stringAt(entry, "clientConfig", "caBundle") ?? "", "base64").toString("utf8");
}

/** The first segment of an entry's path, if it has the form of a token. */
function tokenOf(entry: JsonObject): string | undefined {
  const { service, url } = (entry["clientConfig"] ?? {}) as JsonObject;
  const path = stringAt(service, "path") ?? (typeof url === "string" ? new URL(url).pathname : "");
  const [, first = ""] = path.split("/");
  return PATH_TOKEN.test(first) ? first : undefined;
}
