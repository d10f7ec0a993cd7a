import { at, type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { SERVING_SECRET } from "../../core/registration/certificates.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { CONFIGURATION_FILE } from "../../core/registration/pods/restricted-pod.ts";
import type { Objects } from "./apply.ts";
import { isReplicas } from "./install.ts";

/** The ConfigMap that replicas read their configuration from. */
function isConfiguration(object: JsonObject): boolean {
  return stringAt(object, "kind") === "ConfigMap" && nameOf(object) === OWN_NAMES.configuration;
}

/**
 * Why a configuration can't replace that of running replicas: their bundle does not trust the certificate of another mode, so that new
 * replicas would never be ready. `undefined` where it can, or none runs.
 */
export async function certificatesChange(
  objects: Objects,
  wanted: readonly JsonObject[],
): Promise<string | undefined> {
  const configuration = wanted.find(isConfiguration);
  const deployment = wanted.find(isReplicas);
  if (configuration === undefined || deployment === undefined) return undefined;
  const before = certificatesOf(await objects.read(configuration));
  const after = certificatesOf(configuration);
  if (before === undefined || before === after) return undefined;
  if (Number(at(await objects.read(deployment), "status", "readyReplicas") ?? 0) === 0) return undefined;
  return `certificates can't change from ${before} to ${after} while usher runs: API servers would not trust the new replicas, which would never be ready\n  keep ${before}; or uninstall usher, which leaves policies, and install it again`;
}

/** `undefined` where there is no configuration, or it was edited into another form. */
function certificatesOf(configMap: JsonObject | undefined): string | undefined {
  try {
    const spec = at(JSON.parse(stringAt(configMap, "data", CONFIGURATION_FILE) ?? ""), "spec");
    const mode = stringAt(spec, "certificates") ?? "Own";
    return mode === "Secret" ? `Secret ${stringAt(spec, "certificateSecret") ?? SERVING_SECRET}` : mode;
  } catch {
    return undefined;
  }
}
