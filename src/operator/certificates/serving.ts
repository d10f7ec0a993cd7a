import type { AcceptsToken } from "../../admission/review/routes.ts";
import type { IssueCertificate, LivePair } from "../../admission/tls/certificate.ts";
import type { CertificateFiles } from "../../admission/tls/certificate-files.ts";
import type { Client } from "../../cluster/client/client.ts";
import { certificateModeOf, managesWebhooks } from "../../core/installation/installation.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { BUNDLE_WRITERS } from "../../core/registration/certificates.ts";
import { openCertificates } from "./certificates.ts";
import { openMounted } from "./mounted-certificates.ts";
import { PublishedWebhooks } from "./published-webhooks.ts";
import type { WebhookCertificates } from "./webhook-certificates.ts";

export interface ServingOptions {
  /** The mounted certificate; absent in mode Own, unless another system manages certificate and webhooks. */
  readonly files: CertificateFiles | undefined;
  /** Issues usher's own pairs. @default makeCertificate */
  readonly issue?: IssueCertificate;
}

/** The certificate that a replica serves with, and how it recognizes API servers. */
interface ServingCertificate {
  /** Absent if the files are served unchanged. */
  readonly pair: LivePair | undefined;
  /** The certificates that the leader registers webhooks with; absent if it manages none. */
  readonly managed: WebhookCertificates | undefined;
  /** Absent if callers can't be identified. */
  readonly acceptsToken: AcceptsToken | undefined;
  /** Whether API servers trust a certificate chain; `undefined` while that is unknown. */
  readonly trusts: (chain: string) => boolean | undefined;
  readonly stop: () => void;
}

interface ServingFound {
  readonly client: Client;
  readonly assembly: Assembly;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Usher's Deployment, as an ownerReference. */
  readonly owner?: JsonObject | undefined;
}

/** Resolves once there is a certificate to serve with, and the trust of API servers is known. */
export async function openServing(
  { client, assembly, log, signal, owner }: ServingFound,
  { files, issue }: ServingOptions,
): Promise<ServingCertificate> {
  const { installation } = assembly;
  const { namespace } = installation;
  const mode = certificateModeOf(installation);
  const published = new PublishedWebhooks({ client, namespace, log });
  const trusts = (chain: string) => published.trusts(chain);
  if (mode !== "Own" && files === undefined)
    throw new Error(`certificates: ${mode} needs --tls-cert and --tls-key, the files of the mounted Secret`);
  if (mode === "Own" && files !== undefined) {
    await published.start();
    return {
      pair: undefined,
      managed: undefined,
      acceptsToken: undefined,
      trusts,
      stop: () => published.stop(),
    };
  }
  const certificates =
    files === undefined
      ? await openCertificates({ client, namespace, log, signal, owner, issue })
      : await openMounted({ files, published, namespace, writer: BUNDLE_WRITERS[mode], log, signal });
  await published.start();
  // The author of the configurations chooses the token, if any.
  const acceptsToken = managesWebhooks(installation) ? certificates.acceptsToken : published.acceptsToken;
  return {
    pair: certificates,
    managed: certificates,
    acceptsToken,
    trusts,
    stop: () => {
      published.stop();
      certificates.stop();
    },
  };
}
