import { type Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import { calling, evaluating, Repeatable, seconds } from "../options.ts";
import type { Outcome } from "../program.ts";

/** A command of an installation. */
interface InstallCommand {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  /** Its own flags, and those that it shares. */
  readonly flags: (command: Command) => Command;
  /** After its flags: examples and exit codes. */
  readonly after: (usher: string) => string;
  /** Loaded when it is called. */
  readonly run: (options: Called) => Promise<(options: never, io: Io) => Promise<number>>;
}

type Called = Readonly<Record<string, unknown>>;

const COMMANDS: readonly InstallCommand[] = [
  {
    name: "install",
    summary: "install usher into a cluster, or update it to this version",
    description:
      "Prints what it will create and update, applies it in order, and waits until usher serves and has registered its webhooks; webhooks are registered once a replica is ready. It can be run again at any time: unchanged objects are not touched, and settings without a flag keep their installed values. Ownership conflicts, such as the CRDs of kupid, are reported and stop it; so do an installation in another namespace and a newer version.",
    flags: (command) =>
      shaping(
        changing(
          command
            .option("--take-over", "take ownership of conflicting objects")
            .option("--leave-conflicting", "leave conflicting objects unchanged and install the rest")
            .option(
              "--defaults",
              "reset configuration, image, replicas and pod labels without a flag to defaults",
            )
            .option("--allow-downgrade", "replace a newer version by this one, including CRDs")
            .option(
              "--crds-only",
              "install or upgrade only the CRDs; those of a newer version or another owner stay",
            )
            .option("--wait", "wait until usher is ready", true)
            .option("--no-wait", "do not wait until usher is ready")
            .option("--timeout <seconds>", "seconds to wait", seconds, 180),
        ),
      ),
    after: (usher) => `
Examples:
  ${usher} install --dry-run
  ${usher} install --context staging
  ${usher} install --take-over

Exit codes: 0 installed, 1 conflicting objects or another installation, nothing
was changed, 2 invalid arguments or input, 3 the cluster failed, or usher was
not ready in time.`,
    run: async ({ crdsOnly }) =>
      crdsOnly === true ? (await import("./install.ts")).installCrds : (await import("./install.ts")).install,
  },
  {
    name: "uninstall",
    summary: "remove usher from a cluster; policies are kept by default",
    description:
      "Prints what it will delete, and deletes it: webhooks first, so that no request waits for usher, then everything else. CRDs and policies are kept unless --custom-resources is given. A namespace is kept if it existed before usher, contains unmanaged objects, or can't be listed.",
    flags: (command) =>
      changing(
        command
          .option("--custom-resources", "also delete CRDs, and with them all policies")
          .option(
            "--force",
            "also delete what Helm, Argo CD, Flux or Gardener left and is no longer there to delete",
          )
          .option(
            "--webhooks-only",
            "delete only webhooks and what usher put on nodes, and leave the rest to the tool that manages it",
          ),
      ),
    after: (usher) =>
      `\nExamples:\n  ${usher} uninstall --dry-run\n  ${usher} uninstall --custom-resources\n  ${usher} uninstall --force   after kubectl delete namespace, for what Helm left`,
    run: async ({ webhooksOnly }) =>
      webhooksOnly === true
        ? (await import("./uninstall.ts")).removeWebhooks
        : (await import("./uninstall.ts")).uninstall,
  },
  {
    name: "cleanup",
    summary: "remove leftovers of disabled modules in a cluster",
    description:
      "Removes leftovers of modules that the configuration disables: marks on objects of others, such as the startup taint of nodes, and objects that usher managed for them. usher install does the same; use this if usher was deployed by other means. The configuration is that of --config, or of the existing installation.",
    flags: (command) =>
      changing(
        command.option(
          "--all",
          "also of enabled modules: use it if usher was removed without its own uninstall",
        ),
      ),
    after: (usher) =>
      `\nExamples:\n  ${usher} cleanup --dry-run\n  ${usher} cleanup --all\n\nExit codes: 0 nothing is left, 2 invalid arguments or input, 3 something is\nleft; it is printed with the command that removes it.`,
    run: async () => (await import("./cleanup.ts")).cleanup,
  },
  {
    name: "verify",
    summary: "check that the API server calls usher",
    description:
      "Checks that usher's webhooks are registered, and sends an invalid policy as a dry run. Only usher can refuse it, so a refusal shows that the API server reaches usher. Nothing is stored.",
    flags: (command) =>
      calling(
        command
          .option("-n, --namespace <name>", "namespace of usher (default: from --config, or usher-system)")
          .option("--timeout <seconds>", "seconds to try", seconds, 30),
      ),
    after: (usher) =>
      `\nExamples:\n  ${usher} verify --context staging\n\nExit codes: 0 usher is called, 1 it is not, 2 invalid arguments or input, 3 the cluster\nfailed.`,
    run: async () => (await import("./verify.ts")).verify,
  },
];

/** The commands that install and uninstall usher, wholly or in part. */
export function installCommands(usher: Command, io: Io, outcome: Outcome): void {
  for (const { name, summary, description, flags, after, run } of COMMANDS)
    evaluating(flags(usher.command(name).summary(summary).description(description)))
      .addHelpText("after", after(io.name))
      .action(async (options) => {
        outcome.code = await (await run(options))(options as never, io);
      });
}

/** Flags of the workload, for all commands that print or apply an installation. */
export function shaping(command: Command): Command {
  return command
    .option("--image <image>", "image of the replicas (default: usher of this version)")
    .option("--replicas <n>", "number of replicas", replicas)
    .addOption(new Repeatable("--pod-label <key=value>", "additional label of the pods").argParser(label));
}

/** Flags of commands that change an installation. */
function changing(command: Command): Command {
  return calling(command)
    .option(
      "-n, --namespace <name>",
      "namespace of usher (default: from --config, the existing installation, or usher-system)",
    )
    .option("--dry-run", "print what would change, and change nothing");
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
