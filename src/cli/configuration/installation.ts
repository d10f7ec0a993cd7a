import type { Assembly } from "../../core/evaluate/assembly.ts";
import type { JsonObject } from "../../core/json.ts";
import { checkDnsLabel } from "../../core/kubernetes/names.ts";
import { registration } from "../../core/registration/index.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { REPLICAS, SERVICE_PORT } from "../../core/registration/workload.ts";
import type { Installed } from "../../operator/install/installed.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { assembleModules, modulesOf } from "../source/source.ts";
import { version } from "../version.ts";
import { type Configuration, configurationIn, readConfiguration } from "./configuration.ts";

/** What says how usher is installed; shared by all commands that show, make or remove an installation. */
export interface InstallationOptions {
  readonly image?: string;
  readonly replicas?: number;
  readonly podLabel?: readonly (readonly [string, string])[];
  readonly namespace?: string;
  readonly config?: string;
  readonly featureGates?: string;
}

export interface InstallationObjects {
  readonly assembly: Assembly;
  /** In the order in which to apply them. */
  readonly objects: readonly JsonObject[];
  readonly notes: readonly string[];
  /** What no flag says and is as it was installed, where that is not as usual. */
  readonly kept: readonly string[];
}

/** What flags do not say, and where else it may be said. */
export interface Beside {
  readonly caBundle?: string;
  /** What is there already: it stays as it is where no flag says otherwise. */
  readonly installed?: Installed;
}

/** The namespace that flags or the configuration name, if they do. */
export async function namedNamespace(options: InstallationOptions): Promise<string | undefined> {
  const name = options.namespace ?? (await readConfiguration(options.config)).namespace;
  const wrong = name === undefined ? undefined : checkDnsLabel(name);
  if (wrong === undefined) return name;
  throw new CallError(
    options.namespace === undefined
      ? `--config ${options.config}: spec.namespace: ${wrong}`
      : `--namespace: ${wrong}`,
  );
}

/** Every object of an installation, as flags and the configuration say. */
export async function installationObjects(
  options: InstallationOptions,
  io: Io,
  { caBundle, installed }: Beside = {},
): Promise<InstallationObjects> {
  // Only to have it checked: a name that can't be one must not get into a path.
  await namedNamespace(options);
  const read = await configurationFor(options, installed);
  const configuration = {
    ...read,
    ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
  };
  const assembly = assembleModules(await modulesOf(io), options, configuration);
  const { namespace } = assembly.installation;
  const { featureGates, ...others } = configuration;
  const gates = { ...featureGates, ...chosenGates(options.featureGates) };
  const image = options.image ?? installed?.image ?? DEFAULT_IMAGE;
  const replicas = options.replicas ?? installed?.replicas ?? REPLICAS;
  const podLabels =
    options.podLabel === undefined ? (installed?.podLabels ?? {}) : Object.fromEntries(options.podLabel);
  const { objects, notes } = registration(assembly, {
    endpoint: { service: { name: OWN_NAMES.service, namespace, port: SERVICE_PORT } },
    ...(caBundle === undefined ? {} : { caBundle }),
    version: version(),
    workload: {
      image,
      replicas,
      podLabels,
      // As JSON: what zod leaves undefined must not be there. Gates last, so that what is read back gives the same text.
      configuration: JSON.parse(JSON.stringify({ ...others, featureGates: gates })) as JsonObject,
    },
  });
  const labels = Object.entries(podLabels).map(([key, value]) => `${key}=${value}`);
  const kept = [
    ...(options.config === undefined && saysSomething(read) ? ["the configuration"] : []),
    ...(options.replicas === undefined && replicas !== REPLICAS
      ? [replicas === 1 ? "1 replica" : `${replicas} replicas`]
      : []),
    ...(options.image === undefined && image !== DEFAULT_IMAGE ? [`image ${image}`] : []),
    ...(options.podLabel === undefined && labels.length > 0
      ? [`pod ${labels.length === 1 ? "label" : "labels"} ${labels.join(" ")}`]
      : []),
  ];
  return { assembly, objects, notes, kept };
}

const DEFAULT_IMAGE = `usher:${version()}`;

/** From the flag, else from what is installed. */
async function configurationFor(
  { config, namespace }: InstallationOptions,
  installed: Installed | undefined,
): Promise<Configuration> {
  if (config !== undefined || installed === undefined) return readConfiguration(config);
  const place = namespace === undefined ? { namespace: installed.namespace } : {};
  if (installed.configuration === undefined) return place;
  const label = `ConfigMap ${installed.namespace}/${OWN_NAMES.configuration}`;
  try {
    return { ...configurationIn(label, installed.configuration), ...place };
  } catch (error) {
    if (!(error instanceof CallError)) throw error;
    throw new CallError(
      `${error.message}\nso the configuration that is installed can't be kept: give one with --config FILE, or go on without any with --defaults`,
    );
  }
}

function saysSomething({ namespace: _place, featureGates = {}, ...others }: Configuration): boolean {
  return Object.keys(others).length + Object.keys(featureGates).length > 0;
}

/** They have been checked where the assembly was made. */
function chosenGates(text = ""): Record<string, boolean> {
  const parts = text.split(",").map((part) => part.trim().split("="));
  return Object.fromEntries(parts.flatMap(([name, on]) => (name ? [[name, on === "true"]] : [])));
}
