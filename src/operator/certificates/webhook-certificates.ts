import type { InjectedBundle } from "../webhooks/deviation.ts";
import type { Trust } from "./certificate-plan.ts";

/** What the leader must know of the certificate to register webhooks, in every mode. */
export interface WebhookCertificates {
  /** The authorities to trust: PEM. `undefined` where what is published stays as it is. */
  readonly bundle: string | undefined;
  /** Where an injector writes the bundle. */
  readonly injected?: InjectedBundle | undefined;
  /** The authority of the certificate in use, as long as it is valid. */
  readonly ownAuthority: string | undefined;
  /** The authority that must be trusted before the next pair is used. */
  readonly nextAuthority: string | undefined;
  /** The first segment of the webhooks' paths. */
  readonly pathToken: string | undefined;
  /** For both configurations, where they hold the path tokens. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** False while a replica may not know the path token. @default true */
  readonly announced?: boolean;
  /** A client may have seen the path token that is published now. */
  readonly pathsShown: () => void;
  readonly reconcile: (trust: Trust) => Promise<void>;
  readonly refresh: () => Promise<void>;
}
