import { type Command, InvalidArgumentError, Option } from "commander";

/** Flags of every command that evaluates. */
export function evaluating(command: Command): Command {
  return command
    .option("--config <file>", "configuration of the installation (kind UsherConfiguration)")
    .option("--feature-gates <list>", "feature gates, as Name=true,Other=false")
    .option("-q, --quiet", "print only results and errors");
}

/** Flag of every command that judges files: a cluster says its release itself. */
export const KUBERNETES_VERSION = [
  "--kubernetes-version <version>",
  "release of Kubernetes to judge by, such as 1.37 (default: that of the configuration)",
] as const;

export const REVIEW_FORMATS = [
  "table",
  "wide",
  "json",
  "yaml",
  "junit",
  "sarif",
  "markdown",
  "name",
  "diff",
] as const;

export type ReviewFormat = (typeof REVIEW_FORMATS)[number];

export const CLUSTER = [
  "--cluster",
  "read a live cluster (the default without --source); with --source, for everything but policies",
] as const;

/** Flag of every command that judges. */
export const CHANGED_ONLY = ["--changed-only", "leave out what is as it should be"] as const;

/** The same, where a comparison has nothing to leave out. */
export const DIFFERENCES_ONLY = [
  "--changed-only",
  "print only what differs: always so here, for pipelines that pass it to every command",
] as const;

export const STRICT = [
  "--strict",
  "treat unknown kinds, policies without a namespace, and a source without policies as errors",
] as const;

/** Flags of every command that connects to a cluster. */
export function connecting(command: Command): Command {
  return command
    .option(
      "--kubeconfig <file>",
      "path to the kubeconfig (default: KUBECONFIG, in-cluster, or ~/.kube/config)",
    )
    .option("--context <name>", "kubeconfig context to use");
}

/** Flags of every command that calls an API server and ends. */
export function calling(command: Command): Command {
  return connecting(command).option(
    "--request-timeout <n>",
    "seconds to wait for a response of the API server (default: 30)",
    timeout,
  );
}

export function output(formats: readonly string[], standard: string, description: string): Option {
  return new Option("-o, --output <format>", description).choices(formats).default(standard);
}

export function logLevel(): Option {
  return new Option("--log-level <level>", "log level")
    .choices(["debug", "info", "warn", "error"])
    .default("info");
}

export function port(text: string): number {
  return integer(text, 65_535, "It must be an integer from 0 to 65535.");
}

export function seconds(text: string): number {
  return integer(text, 3_600, "It must be an integer from 0 to 3600.");
}

/** As in kubectl also with a unit: `30s`, `2m`. */
function timeout(text: string): number {
  const [, digits = "", unit = "s"] = /^(\d{1,4})([sm]?)$/.exec(text) ?? [];
  const value = Number(digits) * (unit === "m" ? 60 : 1);
  if (!(value >= 1 && value <= 3_600))
    throw new InvalidArgumentError("It must be from 1 to 3600 seconds, such as 30, 30s or 2m.");
  return value;
}

function integer(text: string, max: number, message: string): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= max)) throw new InvalidArgumentError(message);
  return value;
}

/** A flag that may be repeated: its value is a list. Any other counts once. */
export class Repeatable extends Option {
  constructor(flags: string, description: string) {
    super(flags, `${description}; may be repeated`);
    this.argParser((text: string, before: readonly string[] | undefined) => [...(before ?? []), text]);
  }
}

/** Flags of every command that reads manifests. */
export function reading(command: Command): Command {
  return directories(command.addOption(new Repeatable("-f, --filename <file>", "the same, as in kubectl")));
}

/** How directories of manifests are read. */
export function directories(command: Command): Command {
  return command
    .addOption(new Repeatable("-k, --kustomize <dir>", "a kustomization, built by kubectl or kustomize"))
    .option("-R, --recursive", "descend into directories (the default)")
    .option("--no-recursive", "read only the files of a directory itself");
}

/** Files as the cluster. */
export function sourceFlag(
  description = "read a directory of YAML or JSON files, or one file, as the cluster",
): Option {
  return new Repeatable("--source <dir>", description);
}

/** Makes a repeated single-value flag an error, in all commands: the first value would be lost silently. */
export function rejectRepeated(command: Command): Command {
  const given = new Set<string>();
  for (const option of command.options) {
    if (option instanceof Repeatable) continue;
    command.on(`option:${option.name()}`, () => {
      // --wait and --no-wait are two ways to set one value.
      if (given.has(option.attributeName()))
        command.error(`error: option '${option.flags}' is given twice, and counts once`);
      given.add(option.attributeName());
    });
  }
  for (const one of command.commands) rejectRepeated(one);
  return command;
}
