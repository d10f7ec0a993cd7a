import { createHash } from "node:crypto";
import { PATH_TOKEN } from "../../admission/review/routes.ts";
import { certificatesOf } from "../../admission/tls/bundle.ts";
import {
  type IssueCertificate,
  makeCertificate,
  type OwnCertificate,
} from "../../admission/tls/certificate.ts";
import { canonical, isObject, type JsonObject, listAt, own, stringAt } from "../../core/json.ts";
import type { OperandCertificate, OperandCertificates, Operator } from "../../core/module/operator.ts";
import { isByCertManager, serviceNames } from "../../core/registration/certificates.ts";
import { accepts as isAccepted } from "../certificates/acceptance.ts";
import { planRenewal, recordAfter, type Trust } from "../certificates/certificate-plan.ts";
import {
  authorityIn,
  bundleOf,
  type CertificateRecord,
  dataOf,
  recordOf,
  trusts,
} from "../certificates/certificate-record.ts";
import {
  type PathTokens,
  parseTokens,
  rotated,
  TRUST_MS,
  tokensDue,
  tokensText,
} from "../certificates/path-tokens.ts";

export interface SecretsFound {
  /** As they are stored. */
  readonly serving: JsonObject | undefined;
  readonly paths: JsonObject | undefined;
  /** The bundle that API servers trust the operand by, PEM in base64; absent if nothing is registered. */
  readonly published: string | undefined;
  /** The token of the registered webhook's path. */
  readonly registeredToken: string | undefined;
  readonly issuer: OperandCertificates;
  /** A client may have seen the registered token since the last plan. */
  readonly pathsShown: boolean;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export interface SecretsPlan {
  readonly apply: readonly JsonObject[];
  /** Secrets that the next issuer does not write to. */
  readonly remove: readonly JsonObject[];
  readonly certificate: OperandCertificate | undefined;
  readonly caBundle: string | undefined;
  readonly pathToken: string;
  /** Whether a bundle makes API servers accept the certificate of an issuer. */
  readonly accepts?: (caBundle: string) => boolean;
}

const TLS_TYPE = "kubernetes.io/tls";

/** Marks a Secret with a certificate that the operator issued. */
const OWN_MARK = "usher.dev/certificates";

/** The Secrets of an operand: its certificate, issued by the operator or an issuer, and the tokens of the webhook's path. */
export class OperandSecrets {
  readonly #operator: Operator;
  /** Milliseconds, monotonic. */
  readonly #clock: () => number;
  readonly #issue: IssueCertificate;
  /** A pair that is not stored yet: its CA may already be published. */
  #made: OwnCertificate | undefined;
  /** The rotation whose current token a client may have seen. */
  #shown: number | undefined;
  /** The awaited certificate, and since when. */
  #waiting: { readonly for: string; readonly since: number } | undefined;

  constructor(operator: Operator, clock: () => number, issue: IssueCertificate = makeCertificate) {
    this.#operator = operator;
    this.#clock = clock;
    this.#issue = issue;
  }

  async plan(found: SecretsFound): Promise<SecretsPlan> {
    const tokens = this.#tokens(found);
    const paths = this.#secret(this.#operator.paths.secret, {
      data: { [this.#operator.paths.key]: Buffer.from(tokensText(tokens)).toString("base64") },
    });
    const certificate = found.issuer === "Own" ? await this.#own(found) : this.#issued(found);
    return { pathToken: tokens.current, ...certificate, apply: [paths, ...certificate.apply] };
  }

  /** The CA of a next certificate is published before the certificate is used, and the previous one stays trusted. */
  async #own(found: SecretsFound): Promise<Omit<SecretsPlan, "pathToken">> {
    const { now, published } = found;
    const names = serviceNames(this.#operator.service, this.#operator.namespace);
    const stored = recordOf(found.serving);
    // If the Secret is lost, pods still serve the certificate that the webhook trusts.
    const previous = stored.current === undefined ? decoded(published) : stored.previous;
    const record = { ...stored, previous };
    const plan = planRenewal({ record, names, now }, this.#trust(record, published));
    if ([stored.current, stored.next].some((one) => one?.cert === this.#made?.cert)) this.#made = undefined;
    const make = async () => (this.#made ??= await this.#issue(names, now));
    const after = await recordAfter(record, plan, make, now);
    const data = dataOf({ ...after, paths: undefined });
    const bundle = bundleOf(after, ...(previous === undefined ? [] : certificatesOf([previous])));
    const metadata = { labels: { [OWN_MARK]: "Own" } };
    return {
      apply: [this.#secret(this.#operator.servingSecret, { type: TLS_TYPE, data, metadata })],
      remove: mustBeReplaced(found.serving) ? [found.serving] : [],
      certificate: { hash: hashOf(data), trusted: true },
      caBundle: Buffer.from(bundle).toString("base64"),
    };
  }

  #trust({ next }: CertificateRecord, published: string | undefined): Trust {
    const authority = authorityIn(next?.ca);
    if (published === undefined) return "no webhooks";
    if (authority === undefined || !trusts(published, authority)) return "not yet";
    return { forMs: this.#waitedFor(authority) };
  }

  /**
   * A certificate of an issuer is rolled out once API servers accept it; or after some time, because then waiting does
   * not help.
   */
  #issued({ serving, issuer, published, now }: SecretsFound): Omit<SecretsPlan, "pathToken"> {
    const nothing = { apply: [], remove: [], certificate: undefined, caBundle: undefined };
    if (serving === undefined) return nothing;
    if (isOfOtherIssuer(serving, issuer)) return { ...nothing, remove: [serving] };
    const [chain, key] = ["tls.crt", "tls.key"].map((name) => stringAt(serving, "data", name));
    if (!chain || !key) return nothing;
    const data = { "tls.crt": chain, "tls.key": key };
    const [name = ""] = serviceNames(this.#operator.service, this.#operator.namespace);
    const accepts = (caBundle: string) =>
      isAccepted(decoded(caBundle) ?? "", decoded(chain) ?? "", name, now);
    const accepted = published === undefined || accepts(published);
    const trusted = accepted || this.#waitedFor(chain) >= TRUST_MS;
    return { ...nothing, certificate: { hash: hashOf(data), trusted }, accepts };
  }

  #waitedFor(what: string): number {
    if (this.#waiting?.for !== what) this.#waiting = { for: what, since: this.#clock() };
    return this.#clock() - this.#waiting.since;
  }

  /** The stored tokens, or the next ones when due. If they are lost, the registered one still counts. */
  #tokens({ paths, registeredToken, pathsShown, now }: SecretsFound): PathTokens {
    const stored = parseTokens(decoded(stringAt(own(paths, "data"), this.#operator.paths.key)));
    if (stored !== undefined) {
      if (pathsShown) this.#shown = stored.rotatedAt;
      return tokensDue(stored, now, this.#shown === stored.rotatedAt) ?? stored;
    }
    const first = rotated(undefined, now);
    return registeredToken === undefined ? first : { ...first, current: registeredToken };
  }

  #secret(name: string, { metadata, ...rest }: JsonObject): JsonObject {
    const { namespace } = this.#operator;
    return {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name, namespace, ...(isObject(metadata) ? metadata : {}) },
      ...rest,
    };
  }
}

/** The token in the path of a stored webhook. */
export function registeredToken(webhook: JsonObject | undefined): string | undefined {
  const [entry] = listAt(webhook, "webhooks");
  const [, token = ""] = (stringAt(entry, "clientConfig", "service", "path") ?? "").split("/");
  return PATH_TOKEN.test(token) ? token : undefined;
}

/** An issuer does not write to a Secret that is not its own; only cert-manager takes over that of the service CA. */
function isOfOtherIssuer(secret: JsonObject, issuer: OperandCertificates): boolean {
  const isOwn = stringAt(secret, "metadata", "labels", OWN_MARK) !== undefined;
  return isOwn || (issuer === "ServiceCA" && isByCertManager(secret));
}

/** The type of a Secret can't be changed, and a mark of cert-manager would mean that cert-manager still issues it. */
function mustBeReplaced(secret: JsonObject | undefined): secret is JsonObject {
  return secret !== undefined && (stringAt(secret, "type") !== TLS_TYPE || isByCertManager(secret));
}

function decoded(base64: string | undefined): string | undefined {
  return base64 === undefined ? undefined : Buffer.from(base64, "base64").toString("utf8");
}

/** Of the certificate in use and its key: other content of the Secret is not served. */
function hashOf(data: JsonObject): string {
  const served = { "tls.crt": data["tls.crt"], "tls.key": data["tls.key"] };
  return createHash("sha256").update(canonical(served)).digest("hex");
}
