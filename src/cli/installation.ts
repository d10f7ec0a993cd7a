import type { Assembly } from "../core/assembly.ts";
import type { JsonObject } from "../core/json.ts";
import { registration } from "../core/registration/index.ts";
import { OWN_NAMES } from "../core/registration/names.ts";
import { SERVICE_PORT } from "../core/registration/workload.ts";
import { readConfiguration } from "./configuration.ts";
import { assembleFor } from "./source.ts";
import { version } from "./version.ts";

/** What says how usher is installed; shared by all commands that show, make or remove an installation. */
export interface InstallationOptions {
  readonly image?: string;
  readonly replicas?: number;
  readonly podLabel?: readonly (readonly [string, string])[];
  readonly namespace?: string;
  readonly service?: string;
  readonly config?: string;
  readonly featureGates?: string;
}

export interface InstallationObjects {
  readonly assembly: Assembly;
  /** In the order in which to apply them. */
  readonly objects: readonly JsonObject[];
  readonly notes: readonly string[];
}

/** Every object of an installation, as flags and the configuration say. */
export async function installationObjects(
  options: InstallationOptions,
  caBundle?: string,
): Promise<InstallationObjects> {
  const read = await readConfiguration(options.config);
  const configuration = {
    ...read,
    ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
  };
  const assembly = assembleFor(options, configuration);
  const { namespace } = assembly.installation;
  const gates = { ...configuration.featureGates, ...chosenGates(options.featureGates) };
  const { objects, notes } = registration(assembly, {
    endpoint: { service: { name: options.service ?? OWN_NAMES.service, namespace, port: SERVICE_PORT } },
    ...(caBundle === undefined ? {} : { caBundle }),
    version: version(),
    workload: {
      image: options.image ?? `usher:${version()}`,
      ...(options.replicas === undefined ? {} : { replicas: options.replicas }),
      podLabels: Object.fromEntries(options.podLabel ?? []),
      // As JSON: what zod leaves undefined must not be there.
      configuration: JSON.parse(JSON.stringify({ ...configuration, featureGates: gates })) as JsonObject,
    },
  });
  return { assembly, objects, notes };
}

/** They have been checked where the assembly was made. */
function chosenGates(text = ""): Record<string, boolean> {
  const parts = text.split(",").map((part) => part.trim().split("="));
  return Object.fromEntries(parts.flatMap(([name, on]) => (name ? [[name, on === "true"]] : [])));
}
