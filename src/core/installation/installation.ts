import type { JsonObject } from "../json.ts";
import type { ServerVersion } from "../kubernetes/versions.ts";
import { type WorkloadTable, workloadTable } from "../kubernetes/workloads.ts";

/** The collector of review spans, and the sampling. */
export interface Tracing {
  /** The base URL of a collector that speaks OTLP over HTTP. */
  readonly endpoint: string;
  /** The share of reviews without a traced caller that are traced, 0 to 1. @default 1 */
  readonly sampling?: number;
}

/** The facts of one installation of usher, independent of policies. */
export interface Installation {
  /** The namespace that usher runs in. */
  readonly namespace: string;
  /** The control plane's namespaces beside Kubernetes' own: no fail-closed hook may ever match them. */
  readonly controlPlaneNamespaces: readonly string[];
  /** Which kinds hold pods or pod templates. */
  readonly workloads: WorkloadTable;
  /** Control-plane namespaces in which usher may still change objects. @default none */
  readonly opened: readonly string[];
  /** Namespaces that no hook matches. @default none */
  readonly excluded?: readonly string[];
  /** Whether usher registers and repairs its CRDs; otherwise it has no permission on them. @default true */
  readonly manageCrds?: boolean;
  /** For sources without an API server, and until it answers. @default unknown */
  readonly kubernetesVersion?: ServerVersion;
  /** The collector of review spans. @default reviews are not traced */
  readonly tracing?: Tracing;
  /** The settings of the watchdog. @default `DEFAULT_WATCHDOG` */
  readonly watchdog?: WatchdogSettings;
  /** Settings of modules, by module, as parsed by their schemas. @default none */
  readonly settings?: Readonly<Record<string, JsonObject>>;
  /** The source of the serving certificate. @default usher issues its own */
  readonly certificates?: CertificateSettings;
  /** Whether usher writes its webhook configurations, and the objects of modules. @default true */
  readonly manageWebhooks?: boolean;
  /** Whether a write of a policy is answered with warnings about its effect. @default true */
  readonly previewPolicies?: boolean;
  /** Whether usher's pods run on nodes of the control plane. @default false */
  readonly controlPlaneNodes?: boolean;
  /** Who may connect to usher's pods. @default the network decides */
  readonly networkPolicy?: NetworkPolicySettings;
  /** The CA of the client certificates that API servers present, as PEM. @default any client may call */
  readonly clientCa?: string;
}

export interface NetworkPolicySettings {
  readonly enabled: boolean;
  /** The networks from which API servers connect to the webhook port. @default any */
  readonly webhookCidrs: readonly string[];
}

export function certificateModeOf({ certificates }: Pick<Installation, "certificates">): CertificateMode {
  return certificates?.mode ?? "Own";
}

export function managesWebhooks({ manageWebhooks }: Pick<Installation, "manageWebhooks">): boolean {
  return manageWebhooks ?? true;
}

export function previewsPolicies({ previewPolicies }: Pick<Installation, "previewPolicies">): boolean {
  return previewPolicies ?? true;
}

/** The dead-man rule: fail-closed hooks are opened once no replica was ready for some time. */
export interface WatchdogSettings {
  readonly enabled: boolean;
  readonly openAfterSeconds: number;
  /** After which policies of the API server stand in for webhooks. @default 15 */
  readonly fallbackAfterSeconds?: number;
  /** Modules whose hooks are opened although they declare `staysClosed`. */
  readonly open: readonly string[];
}

export const DEFAULT_WATCHDOG: WatchdogSettings = { enabled: true, openAfterSeconds: 300, open: [] };

/** Longer than a rollout or a lost node of one of two replicas leaves none ready. */
export const DEFAULT_FALLBACK_SECONDS = 15;

/** The control plane's namespaces in every cluster, regardless of the installation. */
const KUBERNETES_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease"];

export const DEFAULT_INSTALLATION: Installation = {
  namespace: "usher-system",
  controlPlaneNamespaces: [],
  workloads: workloadTable(),
  opened: [],
};

/** The control plane's namespaces. */
export function controlPlaneOf({ controlPlaneNamespaces }: Installation): string[] {
  return [...new Set([...KUBERNETES_NAMESPACES, ...controlPlaneNamespaces])];
}

/** Namespaces that modules ignore: the control plane's and usher's own, unless the installation opened them. */
export function exemptNamespaces(installation: Installation): string[] {
  const all = [...controlPlaneOf(installation), installation.namespace];
  return all.filter((name) => !installation.opened.includes(name));
}

/** The issuer of the serving certificate: usher itself, cert-manager, OpenShift's service CA, or the administrator. */
export const CERTIFICATE_MODES = ["Own", "CertManager", "ServiceCA", "Secret"] as const;
export type CertificateMode = (typeof CERTIFICATE_MODES)[number];

/** An issuer of cert-manager. */
export interface IssuerReference {
  readonly name: string;
  readonly kind: string;
  readonly group: string;
}

export interface CertificateSettings {
  readonly mode: CertificateMode;
  /** The Secret of mode Secret. @default usher-serving-certificate */
  readonly secret?: string;
  /** The signer in mode CertManager. @default a CA for usher alone, which cert-manager issues */
  readonly issuer?: IssuerReference;
}
