import type { Trust } from "./certificate-plan.ts";

/** The bundle of an injector, as far as entries depend on it. */
export interface InjectedBundle {
  /** The last bundle that was seen, in base64: for a configuration that was deleted. */
  readonly last: string | undefined;
  /** Whether a bundle makes API servers accept the certificate in use. */
  readonly accepts: (caBundle: string) => boolean;
}

/** The facts about the certificate that the leader needs to register webhooks, in every mode. */
export interface WebhookCertificates {
  /** The CAs to trust: PEM. `undefined` if the published bundle stays. */
  readonly bundle: string | undefined;
  /** Set if an injector writes the bundle. */
  readonly injected?: InjectedBundle | undefined;
  /** The CA of the certificate in use, as long as it is valid. */
  readonly ownAuthority: string | undefined;
  /** The CA that must be trusted before the next pair is used. */
  readonly nextAuthority: string | undefined;
  /** The first segment of the webhooks' paths. */
  readonly pathToken: string | undefined;
  /** For both configurations, if they hold the path tokens. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** False while a replica may not know the path token. @default true */
  readonly announced?: boolean;
  /** A client may have seen the published path token. */
  readonly pathsShown: () => void;
  readonly reconcile: (trust: Trust) => Promise<void>;
  readonly refresh: () => Promise<void>;
}
