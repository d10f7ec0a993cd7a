import type { JsonObject } from "../json.ts";
import type { ServerVersion } from "../kubernetes/versions.ts";
import { type WorkloadTable, workloadTable } from "../kubernetes/workloads.ts";

/** Where spans of reviews go, and how many. */
export interface Tracing {
  /** The base URL of a collector that speaks OTLP over HTTP. */
  readonly endpoint: string;
  /** The share of reviews without a traced caller that are traced, 0 to 1. @default 1 */
  readonly sampling?: number;
}

/** What is true of one installation of usher, whatever the policies say. */
export interface Installation {
  /** The namespace that usher runs in. */
  readonly namespace: string;
  /** Where the control plane's pods live beside Kubernetes' own namespaces: no closed hook may ever stand before them. */
  readonly controlPlaneNamespaces: readonly string[];
  /** Which kinds hold pods or pod templates. */
  readonly workloads: WorkloadTable;
  /** Control-plane namespaces in which usher may change objects nevertheless. @default none */
  readonly opened: readonly string[];
  /** Namespaces that no hook matches. @default none */
  readonly excluded?: readonly string[];
  /** Whether usher registers and repairs its CRDs; without, it has no right to them. @default true */
  readonly manageCrds?: boolean;
  /** For sources without an API server, and until it answers. @default unknown */
  readonly kubernetesVersion?: ServerVersion;
  /** Where spans of reviews go. @default reviews are not traced */
  readonly tracing?: Tracing;
  /** What is opened while no replica is ready. @default `DEFAULT_WATCHDOG` */
  readonly watchdog?: WatchdogSettings;
  /** Settings of modules, by module, as parsed by their schemas. @default none */
  readonly settings?: Readonly<Record<string, JsonObject>>;
  /** Where the serving certificate comes from. @default usher makes its own */
  readonly certificates?: CertificateSettings;
  /** Whether usher writes its webhook configurations, and the objects of modules. @default true */
  readonly manageWebhooks?: boolean;
  /** Whether a write of a policy is answered with warnings about what it changes. @default true */
  readonly previewPolicies?: boolean;
  /** Whether usher's pods run on nodes of the control plane. @default false */
  readonly controlPlaneNodes?: boolean;
  /** Who may connect to usher's pods. @default the network decides */
  readonly networkPolicy?: NetworkPolicySettings;
  /** The authority of the client certificates that API servers present, as PEM. @default any client may call */
  readonly clientCa?: string;
}

interface NetworkPolicySettings {
  readonly enabled: boolean;
  /** From where API servers connect to the webhook port. @default anywhere */
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
  /** Modules whose hooks are opened though they declare `staysClosed`. */
  readonly open: readonly string[];
}

export const DEFAULT_WATCHDOG: WatchdogSettings = { enabled: true, openAfterSeconds: 300, open: [] };

/** The control plane's in every cluster, whatever an installation says. */
const KUBERNETES_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease"];

export const DEFAULT_INSTALLATION: Installation = {
  namespace: "usher-system",
  controlPlaneNamespaces: [],
  workloads: workloadTable(),
  opened: [],
};

/** Where the control plane's pods live. */
export function controlPlaneOf({ controlPlaneNamespaces }: Installation): string[] {
  return [...new Set([...KUBERNETES_NAMESPACES, ...controlPlaneNamespaces])];
}

/** Namespaces that modules leave alone: the control plane's and usher's own, unless the installation opened them. */
export function exemptNamespaces(installation: Installation): string[] {
  const all = [...controlPlaneOf(installation), installation.namespace];
  return all.filter((name) => !installation.opened.includes(name));
}

/** Who makes the serving certificate: usher itself, cert-manager, OpenShift's service CA, or the administrator. */
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
  /** What signs in mode CertManager. @default an authority of usher's own, which cert-manager makes */
  readonly issuer?: IssuerReference;
}
