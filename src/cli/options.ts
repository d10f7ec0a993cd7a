import { type Command, InvalidArgumentError, Option } from "commander";

/** Flags of every command that evaluates. */
export function evaluating(command: Command): Command {
  return command
    .option("--config <file>", "configuration of the installation (kind UsherConfiguration)")
    .option("--feature-gates <list>", "feature gates, as Name=true,Other=false")
    .option("-q, --quiet", "print only results and errors");
}

/** Flags of every command that connects to a cluster. */
export function connecting(command: Command): Command {
  return command
    .option(
      "--kubeconfig <file>",
      "path to the kubeconfig (default: KUBECONFIG, in-cluster, or ~/.kube/config)",
    )
    .option("--context <name>", "kubeconfig context to use");
}

export function output(formats: readonly string[], standard: string, description: string): Option {
  return new Option("-o, --output <format>", description).choices(formats).default(standard);
}

export function port(text: string): number {
  return integer(text, 65_535, "It must be an integer from 0 to 65535.");
}

export function seconds(text: string): number {
  return integer(text, 3_600, "It must be an integer from 0 to 3600.");
}

function integer(text: string, max: number, message: string): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= max)) throw new InvalidArgumentError(message);
  return value;
}

/** For an option that may be repeated. */
export function several(text: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), text];
}
