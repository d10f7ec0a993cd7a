import { type Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import { connecting, evaluating, seconds } from "../options.ts";
import type { Outcome } from "../program.ts";

/** The commands that change what is in a cluster. */
export function installCommands(usher: Command, io: Io, outcome: Outcome): void {
  installCommand(usher, io, outcome);
  uninstallCommand(usher, io, outcome);
}

/** How usher shall run, for all commands that show or make an installation. */
export function shaping(command: Command): Command {
  return command
    .option("--image <image>", "the image that the replicas run (default: usher of this version)")
    .option("--replicas <n>", "how many replicas", replicas)
    .option("--pod-label <key=value>", "a further label for the replicas' pods; may be repeated", label);
}

/** What both of them take. */
function changing(command: Command): Command {
  return connecting(command)
    .option(
      "-n, --namespace <name>",
      "the namespace that usher runs in (default: as --config says, else where it is installed, else usher-system)",
    )
    .option("--dry-run", "say what would be done, and do none of it");
}

function installCommand(usher: Command, io: Io, outcome: Outcome): void {
  const install = usher
    .command("install")
    .summary("install usher into a cluster, or bring an installation to this version")
    .description(
      "Says what it will create and update, does it in order, and waits until usher answers and has registered its webhooks: no webhook is registered before a replica can answer. What is as it should be is not touched, and what no flag says is kept as it is installed, so it can be run again at any time. Objects of others that have usher's names, such as the CRDs of kupid, are reported and stop it, and so do an usher in another namespace and a newer one.",
    )
    .option("--take-over", "make objects of others that have usher's names usher's own")
    .option("--leave-foreign", "leave such objects as they are and install the rest")
    .option(
      "--defaults",
      "keep no configuration, image, replicas or pod labels of an installation: what no flag says is as usual",
    )
    .option("--allow-downgrade", "go back from a newer usher to this version, CRDs included")
    .option("--wait", "wait until usher answers (the default)", true)
    .option("--no-wait", "do not wait until usher answers")
    .option("--timeout <seconds>", "how long to wait", seconds, 180);
  evaluating(shaping(changing(install)))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} install --dry-run
  ${io.name} install --context staging
  ${io.name} install --take-over

Exit codes: 0 usher is installed, 1 objects of others, an usher elsewhere or a
newer one are in the way and nothing was changed, 2 the call is wrong, 3 the
cluster refused something, can't be reached, or usher did not answer in time.`,
    )
    .action(async (options) => {
      const { install: run } = await import("./install.ts");
      outcome.code = await run(options, io);
    });
}

function uninstallCommand(usher: Command, io: Io, outcome: Outcome): void {
  const uninstall = usher
    .command("uninstall")
    .summary("take usher out of a cluster; policies stay unless asked")
    .description(
      "Says what it will delete and does it: the webhooks first, so that nothing in the cluster waits for what is going, then all else. CRDs and policies stay unless --custom-resources is given, and so does a namespace that was there before usher, holds what is not usher's, or can't be looked into.",
    )
    .option("--custom-resources", "also delete the CRDs, and with them every policy");
  evaluating(changing(uninstall))
    .addHelpText(
      "after",
      `\nExamples:\n  ${io.name} uninstall --dry-run\n  ${io.name} uninstall --custom-resources`,
    )
    .action(async (options) => {
      const { uninstall: run } = await import("./uninstall.ts");
      outcome.code = await run(options, io);
    });
}

function replicas(text: string): number {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (value < 1) throw new InvalidArgumentError("It must be a whole number from 1 to 999.");
  return value;
}

function label(
  text: string,
  before: readonly (readonly [string, string])[] = [],
): (readonly [string, string])[] {
  const [, key, value] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (key === undefined || value === undefined) throw new InvalidArgumentError("Write it as KEY=VALUE.");
  return [...before, [key, value]];
}
