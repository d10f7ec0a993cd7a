import { type Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import { calling, evaluating, seconds } from "../options.ts";
import type { Outcome } from "../program.ts";

/** The commands that install and uninstall usher, wholly or in part. */
export function installCommands(usher: Command, io: Io, outcome: Outcome): void {
  installCommand(usher, io, outcome);
  uninstallCommand(usher, io, outcome);
  cleanupCommand(usher, io, outcome);
  verifyCommand(usher, io, outcome);
}

/** Flags of the workload, for all commands that print or apply an installation. */
export function shaping(command: Command): Command {
  return command
    .option("--image <image>", "image of the replicas (default: usher of this version)")
    .option("--replicas <n>", "number of replicas", replicas)
    .option("--pod-label <key=value>", "additional label of the pods; may be repeated", label);
}

/** Flags of both commands. */
function changing(command: Command): Command {
  return calling(command)
    .option(
      "-n, --namespace <name>",
      "namespace of usher (default: from --config, the existing installation, or usher-system)",
    )
    .option("--dry-run", "print what would change, and change nothing");
}

function installCommand(usher: Command, io: Io, outcome: Outcome): void {
  const install = usher
    .command("install")
    .summary("install usher into a cluster, or update it to this version")
    .description(
      "Prints what it will create and update, applies it in order, and waits until usher serves and has registered its webhooks; webhooks are registered once a replica is ready. It can be run again at any time: unchanged objects are not touched, and settings without a flag keep their installed values. Ownership conflicts, such as the CRDs of kupid, are reported and stop it; so do an installation in another namespace and a newer version.",
    )
    .option("--take-over", "take ownership of conflicting objects")
    .option("--leave-conflicting", "leave conflicting objects unchanged and install the rest")
    .option("--defaults", "reset configuration, image, replicas and pod labels without a flag to defaults")
    .option("--allow-downgrade", "replace a newer version by this one, including CRDs")
    .option("--crds-only", "install or upgrade only the CRDs; those of a newer version or another owner stay")
    .option("--wait", "wait until usher is ready (the default)", true)
    .option("--no-wait", "do not wait until usher is ready")
    .option("--timeout <seconds>", "seconds to wait", seconds, 180);
  evaluating(shaping(changing(install)))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} install --dry-run
  ${io.name} install --context staging
  ${io.name} install --take-over

Exit codes: 0 installed, 1 conflicting objects or another installation, nothing
was changed, 2 invalid arguments or input, 3 the cluster failed, or usher was
not ready in time.`,
    )
    .action(async (options) => {
      const run =
        options.crdsOnly === true
          ? (await import("./crds.ts")).installCrds
          : (await import("./install.ts")).install;
      outcome.code = await run(options, io);
    });
}

function uninstallCommand(usher: Command, io: Io, outcome: Outcome): void {
  const uninstall = usher
    .command("uninstall")
    .summary("remove usher from a cluster; policies are kept by default")
    .description(
      "Prints what it will delete, and deletes it: webhooks first, so that no request waits for usher, then everything else. CRDs and policies are kept unless --custom-resources is given. A namespace is kept if it existed before usher, contains unmanaged objects, or can't be listed.",
    )
    .option("--custom-resources", "also delete CRDs, and with them all policies")
    .option(
      "--webhooks-only",
      "delete only webhooks and what usher put on nodes, and leave the rest to the tool that manages it",
    );
  evaluating(changing(uninstall))
    .addHelpText(
      "after",
      `\nExamples:\n  ${io.name} uninstall --dry-run\n  ${io.name} uninstall --custom-resources`,
    )
    .action(async (options) => {
      const run =
        options.webhooksOnly === true
          ? (await import("./remove-webhooks.ts")).removeWebhooks
          : (await import("./uninstall.ts")).uninstall;
      outcome.code = await run(options, io);
    });
}

function verifyCommand(usher: Command, io: Io, outcome: Outcome): void {
  const verify = usher
    .command("verify")
    .summary("check that the API server calls usher")
    .description(
      "Checks that usher's webhooks are registered, and sends an invalid policy as a dry run, which only usher can refuse: so a review has reached usher, and its response came back. Nothing is stored.",
    )
    .option("-n, --namespace <name>", "namespace of usher (default: from --config, or usher-system)")
    .option("--timeout <seconds>", "seconds to try", seconds, 30);
  evaluating(calling(verify))
    .addHelpText(
      "after",
      `\nExamples:\n  ${io.name} verify --context staging\n\nExit codes: 0 usher is called, 1 it is not, 2 invalid arguments or input, 3 the cluster\nfailed.`,
    )
    .action(async (options) => {
      const { verify: run } = await import("./verify.ts");
      outcome.code = await run(options, io);
    });
}

function cleanupCommand(usher: Command, io: Io, outcome: Outcome): void {
  const cleanup = usher
    .command("cleanup")
    .summary("remove what modules that are off left in a cluster")
    .description(
      "Removes what modules that are off in the configuration left: marks on objects of others, such as the startup taint of nodes, and objects that usher managed for them. usher install does the same; use this where usher was deployed by other means. The configuration is that of --config, or of the existing installation.",
    )
    .option("--all", "of every module: once usher was removed without its own uninstall");
  evaluating(changing(cleanup))
    .addHelpText(
      "after",
      `\nExamples:\n  ${io.name} cleanup --dry-run\n  ${io.name} cleanup --all\n\nExit codes: 0 nothing is left, 2 invalid arguments or input, 3 something is\nleft; it is printed with the command that removes it.`,
    )
    .action(async (options) => {
      const { cleanup: run } = await import("./cleanup.ts");
      outcome.code = await run(options, io);
    });
}

function replicas(text: string): number {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (value < 1) throw new InvalidArgumentError("It must be an integer from 1 to 999.");
  return value;
}

function label(
  text: string,
  before: readonly (readonly [string, string])[] = [],
): (readonly [string, string])[] {
  const [, key, value] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (key === undefined || value === undefined) throw new InvalidArgumentError("It must be KEY=VALUE.");
  return [...before, [key, value]];
}
