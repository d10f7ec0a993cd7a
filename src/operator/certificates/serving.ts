import type { AcceptsToken } from "../../admission/review/routes.ts";
import type { LivePair } from "../../admission/tls/certificate.ts";
import type { CertificateFiles } from "../../admission/tls/certificate-files.ts";
import type { Client } from "../../cluster/client/client.ts";
import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { certificateModeOf, managesWebhooks } from "../../core/module/installation.ts";
import { BUNDLE_WRITERS } from "../../core/registration/certificates.ts";
import { openCertificates } from "./certificates.ts";
import { openMounted } from "./mounted-certificates.ts";
import { PublishedWebhooks } from "./published-webhooks.ts";
import type { WebhookCertificates } from "./webhook-certificates.ts";

export interface ServingOptions {
  /** The mounted certificate; in mode Own there is none, unless another system looks after certificate and webhooks. */
  readonly files: CertificateFiles | undefined;
}

/** The certificate that a replica serves with, and how it knows API servers. */
interface ServingCertificate {
  /** Absent where the files are served as they are. */
  readonly pair: LivePair | undefined;
  /** What the leader registers webhooks with; absent where it looks after none. */
  readonly managed: WebhookCertificates | undefined;
  /** Absent where nothing tells who calls. */
  readonly acceptsToken: AcceptsToken | undefined;
  /** Whether API servers accept a chain of certificates; `undefined` while that is unknown. */
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

/** Resolves once there is a certificate to serve with, and it is known what API servers trust. */
export async function openServing(
  { client, assembly, log, signal, owner }: ServingFound,
  { files }: ServingOptions,
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
      ? await openCertificates({ client, namespace, log, signal, owner })
      : await openMounted({ files, published, namespace, writer: BUNDLE_WRITERS[mode], log, signal });
  await published.start();
  // The writer of the configurations chooses the token, if any.
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
