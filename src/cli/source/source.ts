import { existsSync } from "node:fs";
import { parseVersion } from "../../core/kubernetes/versions.ts";
import { Assembly } from "../../core/module/assembly.ts";
import { loadModules } from "../../core/module/declaration.ts";
import type { Module } from "../../core/module/module.ts";
import { policyCheck } from "../../core/module/policy-check.ts";
import { type FileSource, openFiles } from "../../files/source/file-source.ts";
import { type Configuration, configure, readConfiguration } from "../configuration/configuration.ts";
import { enabledModules } from "../configuration/module-settings.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import type { Terminal } from "../output/terminal.ts";
import type { ApiServerOptions } from "./api-server.ts";
import type { ReadInstalledOptions } from "./installed.ts";

interface SourceOptions {
  readonly source?: readonly string[];
  readonly watch: boolean;
  readonly config?: string;
  readonly featureGates?: string;
  /** Warnings about probable mistakes count as errors. */
  readonly strict?: boolean;
}

/** How a command is configured. */
interface ConfiguredOptions {
  readonly config?: string;
  readonly featureGates?: string;
  /** Of --kubernetes-version. */
  readonly kubernetesVersion?: string;
}

interface AssembleOptions {
  /** A module that is included even if it is off: its own command runs. */
  readonly always?: string;
  /** The evaluated cluster: without --config the configuration of its installation applies. */
  readonly live?: ReadInstalledOptions | undefined;
  /** The command asks what would happen: modules evaluate for other components as well. */
  readonly foresight?: true;
}

/** An assembly for the flags of a command and its configuration. */
export async function assembleFor(
  options: ConfiguredOptions & ApiServerOptions,
  io: Io,
  { always, live, foresight }: AssembleOptions = {},
): Promise<Assembly> {
  const modules = await loadModules(io.modules);
  const release = releaseOf(options, live !== undefined);
  const configuration =
    live === undefined || options.config !== undefined
      ? await readConfiguration(options.config)
      : // Loaded only here: commands on files do not need a client.
        await (await import("./installed.ts")).installedConfiguration(options, live);
  const assembly = assembleModules(modules, options, { ...configuration, ...release }, always);
  return foresight === undefined ? assembly : foreseeing(assembly);
}

/** The value of --kubernetes-version. */
function releaseOf({ kubernetesVersion: text }: ConfiguredOptions, live: boolean): Configuration {
  if (text === undefined) return {};
  if (live)
    throw new CallError("--kubernetes-version: a cluster says its own version; use it with files alone");
  if (parseVersion(text) === undefined)
    throw new CallError(`--kubernetes-version ${text}: must be a release of Kubernetes, such as 1.37`);
  return { kubernetesVersion: text };
}

/** The same modules with the settings that they have for foresight. */
function foreseeing({ modules, installation, gates }: Assembly): Assembly {
  const settings = { ...installation.settings };
  for (const { name, foresightSettings } of modules)
    if (foresightSettings !== undefined) settings[name] = foresightSettings(settings[name]);
  return new Assembly(modules, { ...installation, settings }, gates);
}

/**
 * The enabled modules and the check of their policies. @param always A module that is included even if it is off: its
 * own command runs.
 */
export function assembleModules(
  modules: readonly Module[],
  options: Pick<SourceOptions, "featureGates"> = {},
  configuration: Configuration = {},
  always?: string,
): Assembly {
  const { installation, gates } = configure(modules, configuration, options.featureGates);
  const enabled = enabledModules(modules, configuration.modules);
  const taking = modules.filter((module) => enabled.includes(module) || module.name === always);
  const off = modules.filter((module) => !taking.includes(module));
  return new Assembly([...taking, policyCheck(taking, off)], installation, gates);
}

/** Opens a directory of files as the cluster and reports its problems. */
export async function openSource(
  options: Pick<SourceOptions, "source" | "watch" | "strict">,
  assembly: Assembly,
  screen: Terminal,
): Promise<FileSource> {
  const directory = options.source ?? [];
  const missing = directory.find((one) => !existsSync(one));
  if (missing !== undefined) throw new CallError(`--source ${missing}: no such file or directory`);
  const source = await openFiles({
    directory,
    assembly,
    watch: options.watch,
    report: ({ text, level, problems }) => {
      const mistaken = options.strict === true && problems.some(({ strict }) => strict);
      (level === "error" || mistaken ? screen.complain : screen.note)(text);
    },
    progress: (done, total) => screen.progress("reading", "documents", done, total),
  }).catch((error: unknown) => {
    // By contract the error is about the directory itself, such as one that can't be opened.
    throw new CallError(`--source ${error instanceof Error ? error.message : String(error)}`);
  });
  screen.endProgress();
  return source;
}
