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
