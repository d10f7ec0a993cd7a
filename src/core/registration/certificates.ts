import {
  type CertificateMode,
  certificateModeOf,
  type Installation,
  type IssuerReference,
} from "../installation/installation.ts";
import { at, type JsonObject, stringAt } from "../json.ts";
import { OWN_NAMES } from "./names.ts";

/** Served where cert-manager is installed. */
export const CERT_MANAGER = "cert-manager.io/v1";
const CERT_MANAGER_INJECTS = "cert-manager.io/inject-ca-from";
const SERVICE_CA_INJECTS = "service.beta.openshift.io/inject-cabundle";

/** Where the pods mount the Secret of every mode except Own. */
const CERTIFICATE_FOLDER = "/var/run/usher/certificates";

/** The Secret that others write. Not the name of mode Own, so that a change of the mode never confuses them. */
export const SERVING_SECRET = "usher-serving-certificate";

/** A CA that cert-manager issues for usher alone. */
const AUTHORITY = "usher-ca";
const SELF_SIGNED = "usher-selfsigned";

/** Ten years: replacing a CA makes calls fail for a moment. */
const AUTHORITY_HOURS = 87_600;

/**
 * The writer of `caBundle` of the webhook configurations, by mode. Never two: they would revert each other's writes,
 * and usher could not know which CA is trusted.
 */
export const BUNDLE_WRITERS: Readonly<Record<CertificateMode, "usher" | "injector">> = {
  Own: "usher",
  CertManager: "injector",
  ServiceCA: "injector",
  Secret: "usher",
};

/** The annotations by which an injector recognizes the webhook configurations whose `caBundle` it writes. */
export function injectorAnnotations(installation: Installation): Record<string, string> {
  const mode = certificateModeOf(installation);
  if (mode === "CertManager")
    return { [CERT_MANAGER_INJECTS]: `${installation.namespace}/${OWN_NAMES.service}` };
  return mode === "ServiceCA" ? { [SERVICE_CA_INJECTS]: "true" } : {};
}

/** The writer of `caBundle` of a webhook configuration, if it is not usher. */
export function injectorOf(configuration: JsonObject): string | undefined {
  const annotations = at(configuration, "metadata", "annotations");
  if (at(annotations, CERT_MANAGER_INJECTS) !== undefined) return "cert-manager's cainjector";
  return at(annotations, SERVICE_CA_INJECTS) === undefined ? undefined : "the service CA's injector";
}

/**
 * The annotations by which the service CA recognizes the Service that it signs for; releases before OpenShift 4.4 know
 * only the second.
 */
export function serviceAnnotations(installation: Installation): Record<string, string> {
  if (certificateModeOf(installation) !== "ServiceCA") return {};
  return {
    "service.beta.openshift.io/serving-cert-secret-name": SERVING_SECRET,
    "service.alpha.openshift.io/serving-cert-secret-name": SERVING_SECRET,
  };
}

/** The mount of the Secret of every mode except Own, so that usher needs no permission to read it. */
interface CertificateMount {
  readonly args: readonly string[];
  readonly volumes: readonly JsonObject[];
  readonly mounts: readonly JsonObject[];
}

export function certificateMount(installation: Installation): CertificateMount {
  const mode = certificateModeOf(installation);
  if (mode === "Own") return { args: [], volumes: [], mounts: [] };
  const chosen = mode === "Secret" ? installation.certificates?.secret : undefined;
  return {
    args: [`--tls-cert=${CERTIFICATE_FOLDER}/tls.crt`, `--tls-key=${CERTIFICATE_FOLDER}/tls.key`],
    volumes: [{ name: "certificates", secret: { secretName: chosen ?? SERVING_SECRET } }],
    mounts: [{ name: "certificates", mountPath: CERTIFICATE_FOLDER, readOnly: true }],
  };
}

/** Whether cert-manager has written the Secret: it notes the name of the Certificate. */
export function isByCertManager(secret: JsonObject | undefined): boolean {
  return stringAt(secret, "metadata", "annotations", "cert-manager.io/certificate-name") !== undefined;
}

/** The API server calls the Service by the first name. The others are for manual tests. */
export function serviceNames(service: string, namespace: string): string[] {
  return [
    `${service}.${namespace}.svc`,
    `${service}.${namespace}`,
    `${service}.${namespace}.svc.cluster.local`,
  ];
}

/**
 * The objects from which cert-manager issues the certificate: without an administrator's issuer a self-signed CA, and
 * one certificate by it. The CA's own Secret is not mounted.
 */
export function certificateObjects(installation: Installation): JsonObject[] {
  if (certificateModeOf(installation) !== "CertManager") return [];
  const issuer = installation.certificates?.issuer;
  return certManagerObjects({
    namespace: installation.namespace,
    service: OWN_NAMES.service,
    secret: SERVING_SECRET,
    authority: AUTHORITY,
    selfSigned: SELF_SIGNED,
    ...(issuer === undefined ? {} : { issuer }),
  });
}

interface CertManagerNames {
  readonly namespace: string;
  /** The Service that the certificate is for, and the name of the Certificate. */
  readonly service: string;
  /** The Secret that cert-manager writes the certificate to. */
  readonly secret: string;
  /** The issued CA, and its self-signing issuer. */
  readonly authority: string;
  readonly selfSigned: string;
  /** The issuer that signs instead of that CA. */
  readonly issuer?: IssuerReference;
}

export function certManagerObjects(names: CertManagerNames): JsonObject[] {
  const { namespace, service, secret, authority } = names;
  const own = { name: authority, kind: "Issuer", group: "cert-manager.io" };
  return [
    ...(names.issuer === undefined ? ownAuthority(names) : []),
    certificate(service, namespace, {
      secretName: secret,
      dnsNames: serviceNames(service, namespace),
      usages: ["digital signature", "server auth"],
      issuerRef: { ...(names.issuer ?? own) },
    }),
  ];
}

function ownAuthority({ namespace, authority, selfSigned }: CertManagerNames): JsonObject[] {
  return [
    issuer(selfSigned, namespace, { selfSigned: {} }),
    certificate(authority, namespace, {
      secretName: authority,
      isCA: true,
      commonName: authority,
      duration: `${AUTHORITY_HOURS}h0m0s`,
      issuerRef: { name: selfSigned, kind: "Issuer", group: "cert-manager.io" },
    }),
    issuer(authority, namespace, { ca: { secretName: authority } }),
  ];
}

function issuer(name: string, namespace: string, spec: JsonObject): JsonObject {
  return { apiVersion: CERT_MANAGER, kind: "Issuer", metadata: { name, namespace }, spec };
}

function certificate(name: string, namespace: string, spec: JsonObject): JsonObject {
  return {
    apiVersion: CERT_MANAGER,
    kind: "Certificate",
    metadata: { name, namespace },
    spec: { privateKey: { algorithm: "ECDSA", size: 256, rotationPolicy: "Always" }, ...spec },
  };
}
