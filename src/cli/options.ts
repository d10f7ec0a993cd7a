import { type Command, InvalidArgumentError, Option } from "commander";

/** Options that every command which evaluates takes. */
export function evaluating(command: Command): Command {
  return command
    .option(
      "--config <file>",
      "what is true of the installation: its namespace, further kinds with pod templates (kind UsherConfiguration)",
    )
    .option("--feature-gates <list>", "features to switch, as Name=true,Other=false")
    .option("-q, --quiet", "say nothing but results and errors");
}

/** How every command that needs a live cluster finds it. */
export function connecting(command: Command): Command {
  return command
    .option(
      "--kubeconfig <file>",
      "how to reach the cluster (default: KUBECONFIG, else the pod's own, else ~/.kube/config)",
    )
    .option("--context <name>", "the context of the kubeconfig to use");
}

export function output(formats: readonly string[], standard: string, description: string): Option {
  return new Option("-o, --output <format>", description).choices(formats).default(standard);
}

export function port(text: string): number {
  return whole(text, 65_535, "It must be a whole number from 0 to 65535.");
}

export function seconds(text: string): number {
  return whole(text, 3_600, "It must be whole seconds, at most 3600.");
}

function whole(text: string, most: number, complaint: string): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= most)) throw new InvalidArgumentError(complaint);
  return value;
}

/** For an option that may be repeated. */
export function several(text: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), text];
}
