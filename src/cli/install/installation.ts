import type { JsonObject } from "../../core/json.ts";
import { checkDnsLabel } from "../../core/kubernetes/names.ts";
import type { Assembly } from "../../core/module/assembly.ts";
import { loadModules } from "../../core/module/declaration.ts";
import type { Module } from "../../core/module/module.ts";
import { registration } from "../../core/registration/index.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { REPLICAS, SERVICE_PORT } from "../../core/registration/workload.ts";
import type { Installed } from "../../operator/install/installed.ts";
import { type Configuration, configurationIn, readConfiguration } from "../configuration/configuration.ts";
import { allEnabled } from "../configuration/module-settings.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { assembleModules } from "../source/source.ts";
import { version } from "../version.ts";

/** Flags of all commands that print, apply or remove an installation. */
export interface InstallationOptions {
  readonly image?: string;
  readonly replicas?: number;
  readonly podLabel?: readonly (readonly [string, string])[];
  readonly namespace?: string;
  readonly config?: string;
  readonly featureGates?: string;
}

export interface InstallationObjects {
  /** All modules, on or off. */
  readonly loaded: readonly Module[];
  readonly assembly: Assembly;
  /** In the order in which to apply them. */
  readonly objects: readonly JsonObject[];
  readonly notes: readonly string[];
  /** Settings without a flag that keep an installed value other than the default. */
  readonly kept: readonly string[];
  /** The same with all on that the configuration has off: an earlier configuration may have had it on. */
  readonly everything: () => Pick<InstallationObjects, "assembly" | "objects">;
}

/** Values that do not come from flags. */
interface Beside {
  readonly caBundle?: string;
  /** The existing installation, whose values are kept unless a flag changes them. */
  readonly installed?: Installed;
}

/** The namespace of the flags or the configuration. */
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

interface Loaded {
  readonly loaded: readonly Module[];
  readonly configuration: Configuration;
}

/** Throws if a flag or the configuration is invalid: to be called before a command connects. */
export async function checkInstallation(options: InstallationOptions, io: Io): Promise<void> {
  const { loaded, configuration } = await load(options, io, undefined);
  assembleModules(loaded, options, configuration);
}

async function load(options: InstallationOptions, io: Io, installed: Installed | undefined): Promise<Loaded> {
  // Only checked: an invalid name must not become part of a path.
  await namedNamespace(options);
  const configuration = await configurationFor(options, installed);
  return { loaded: await loadModules(io.modules), configuration };
}

/** Every object of an installation. */
export async function installationObjects(
  options: InstallationOptions,
  io: Io,
  { caBundle, installed }: Beside = {},
): Promise<InstallationObjects> {
  const { loaded, configuration: read } = await load(options, io, installed);
  const image = options.image ?? installed?.image ?? DEFAULT_IMAGE;
  const replicas = options.replicas ?? installed?.replicas ?? REPLICAS;
  const podLabels =
    options.podLabel === undefined ? (installed?.podLabels ?? {}) : Object.fromEntries(options.podLabel);
  const registered = (configuration: Configuration) => {
    const assembly = assembleModules(loaded, options, configuration);
    const { namespace } = assembly.installation;
    const { featureGates, ...others } = configuration;
    const gates = { ...featureGates, ...chosenGates(options.featureGates) };
    const { objects, notes } = registration(assembly, {
      endpoint: { service: { name: OWN_NAMES.service, namespace, port: SERVICE_PORT } },
      ...(caBundle === undefined ? {} : { caBundle }),
      version: version(),
      workload: {
        image,
        replicas,
        podLabels,
        // As JSON: without undefined values. Gates last, so that reading it back gives the same text.
        configuration: JSON.parse(
          JSON.stringify({ ...others, ...(Object.keys(gates).length === 0 ? {} : { featureGates: gates }) }),
        ) as JsonObject,
      },
    });
    return { assembly, objects, notes };
  };
  const configuration = {
    ...read,
    ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
  };
  const everything = () =>
    registered({
      ...configuration,
      manageCrds: true,
      watchdog: undefined,
      networkPolicy: { enabled: true },
      modules: allEnabled(read.modules),
    });
  const labels = Object.entries(podLabels).map(([key, value]) => `${key}=${value}`);
  const kept = [
    ...(options.config === undefined && isCustomized(read) ? ["the configuration"] : []),
    ...(options.replicas === undefined && replicas !== REPLICAS
      ? [replicas === 1 ? "1 replica" : `${replicas} replicas`]
      : []),
    ...(options.image === undefined && image !== DEFAULT_IMAGE ? [`image ${image}`] : []),
    ...(options.podLabel === undefined && labels.length > 0
      ? [`pod ${labels.length === 1 ? "label" : "labels"} ${labels.join(" ")}`]
      : []),
  ];
  return { loaded, ...registered(configuration), kept, everything };
}

export const DEFAULT_IMAGE = `usher:${version()}`;

/** From the flag, else from the existing installation. */
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
      `${error.message}\nthe installed configuration can't be kept: provide one with --config FILE, or reset it with --defaults`,
    );
  }
}

function isCustomized({ namespace: _place, featureGates = {}, ...others }: Configuration): boolean {
  return Object.keys(others).length + Object.keys(featureGates).length > 0;
}

/** Checked when the assembly was created. */
function chosenGates(text = ""): Record<string, boolean> {
  const parts = text.split(",").map((part) => part.trim().split("="));
  return Object.fromEntries(parts.flatMap(([name, on]) => (name ? [[name, on === "true"]] : [])));
}
