/** What the objects of an installation are called. There is one installation in a cluster, so the names are fixed. */
export const OWN_NAMES = {
  account: "usher",
  deployment: "usher",
  service: "usher",
  /** Both webhook configurations. */
  webhooks: "usher",
  certificates: "usher-certificates",
  /** What all replicas compete for. */
  lease: "usher",
  configuration: "usher-configuration",
  /** What lets usher write webhook configurations and CRDs: apart, so that an uninstall can take just that away first. */
  registration: "usher-registration",
} as const;

/** On every object of usher's. */
export const OWN_LABELS = {
  "app.kubernetes.io/name": "usher",
  "app.kubernetes.io/managed-by": "usher",
} as const;

/** Which usher wrote an object: an older one leaves what a newer one wrote. */
export const VERSION_LABEL = "app.kubernetes.io/version";
