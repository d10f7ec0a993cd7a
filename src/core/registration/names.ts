import { isObject, type JsonObject } from "../json.ts";

/** The names of an installation's objects. There is one installation in a cluster, so the names are fixed. */
export const OWN_NAMES = {
  account: "usher",
  deployment: "usher",
  service: "usher",
  /** The Service of the metrics, and its monitors. */
  metrics: "usher-metrics",
  /** Both webhook configurations. */
  webhooks: "usher",
  certificates: "usher-certificates",
  /** The Lease of leader election. */
  lease: "usher",
  configuration: "usher-configuration",
  quota: "usher-critical-pods",
  networkPolicy: "usher",
  /** The permission to write webhook configurations and CRDs: separate, so that an uninstall can remove just that first. */
  registration: "usher-registration",
  /** The Deployment that opens webhooks while no replica is ready, its account and its roles. */
  watchdog: "usher-watchdog",
  /** Represents the installation: see `anchor`. */
  anchor: "usher-installation",
} as const;

/** On every object of usher's. */
export const OWN_LABELS = {
  "app.kubernetes.io/name": "usher",
  "app.kubernetes.io/managed-by": "usher",
} as const;

/** An object with usher's labels, in addition to its own. */
export function labelled(
  object: JsonObject,
  version: string | undefined,
  more: Readonly<Record<string, string>> = {},
): JsonObject {
  const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
  const labels = isObject(metadata["labels"]) ? metadata["labels"] : {};
  // The value of a label can't have the `+` of a build, which does not count in the order of versions either.
  const written = version === undefined ? {} : { [VERSION_LABEL]: version.replace(/\+.*$/s, "") };
  return { ...object, metadata: { ...metadata, labels: { ...OWN_LABELS, ...written, ...labels, ...more } } };
}

/** The version of the usher that wrote an object: an older one leaves objects of a newer one. */
export const VERSION_LABEL = "app.kubernetes.io/version";
