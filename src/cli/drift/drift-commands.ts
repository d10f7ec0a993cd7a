import { type Command, InvalidArgumentError } from "commander";
import { SURVEYED } from "../../modules/surveyed.ts";
import type { Io } from "../io.ts";
import { connecting, evaluating, output, seconds } from "../options.ts";
import type { Outcome } from "../program.ts";

/** For each module whose work on stored workloads can be looked at and renewed: `usher MODULE status` and `usher MODULE reapply`. */
export function surveyCommands(usher: Command, io: Io, outcome: Outcome): void {
  for (const module of SURVEYED) {
    const group = usher
      .command(module)
      .summary(`what ${module} wrote into stored workloads: show it, renew it`)
      .description(
        `Stored workloads keep what ${module} wrote into them when they came in, also when the policy changes or goes. status shows how they stand to the policies of now, reapply renews them.`,
      )
      .helpCommand(false)
      .addHelpText(
        "after",
        `
Examples:
  ${io.name} ${module} status -A
  ${io.name} ${module} reapply --all -n shop --dry-run`,
      );
    statusCommand(group, module, io, outcome);
    reapplyCommand(group, module, io, outcome);
  }
}

function reaching(command: Command): Command {
  return connecting(command)
    .option("-n, --namespace <name>", "the namespace of the workloads (default: default)")
    .option("-A, --all-namespaces", "workloads of all namespaces");
}

function statusCommand(group: Command, module: string, io: Io, outcome: Outcome): void {
  const status = group
    .command("status")
    .summary("show which workloads carry what of which policy, and which lack it")
    .description(
      "Asks for each stored workload what usher would write into it now, changes nothing, and compares. current: it carries what the policy wants. stale: the policy wants something else by now. orphaned: the policy is gone, or no longer wants this workload. missing: the policy wants it, and it carries nothing of the policy.",
    )
    .argument("[policy]", "only what is of this policy: NAME, or NAMESPACE/NAME")
    .option("--source <dir>", "a directory of files, or one file, as the cluster, workloads included")
    .addOption(output(["table", "json", "yaml"], "table", "format of the result"));
  evaluating(reaching(status))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} ${module} status -A
  ${io.name} ${module} status etcd-pool -A -o json
  ${io.name} ${module} status -n shop --source examples/cluster

Exit codes: 0 all are current, 1 some are not, 2 the call or the source has a
mistake, 3 the cluster refused something or can't be reached.`,
    )
    .action(async (policy: string | undefined, options) => {
      const { status: run } = await import("./status.ts");
      outcome.code = await run(module, policy, options, io);
    });
}

function reapplyCommand(group: Command, module: string, io: Io, outcome: Outcome): void {
  const reapply = group
    .command("reapply")
    .summary("renew workloads: what policies want now comes, what is no longer wanted goes")
    .description(
      "Says what would change, by a dry run in the cluster, and then asks usher for it, workload by workload, with your own rights: an annotation asks, and usher takes it away as it answers. Changed templates roll out, each in its own time: reapply does not wait for that, but --parallel and --pause say how many it begins and how fast. What would not change is not touched.",
    )
    .argument("[workload...]", "which: KIND/NAME, such as deployment/web")
    .option(
      "--policy <name>",
      "all that are not current with this policy, be it gone: NAME, or NAMESPACE/NAME",
    )
    .option("--all", "all that are not current with some policy")
    .option("--dry-run", "say what would change, and change nothing")
    .option("--parallel <n>", "how many to ask for at once", parallel, 2)
    .option("--pause <seconds>", "how long to wait after each, before the next", seconds, 0)
    .addOption(output(["table", "json", "yaml"], "table", "format of the result"));
  evaluating(reaching(reapply))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} ${module} reapply deployment/web statefulset/etcd -n shop
  ${io.name} ${module} reapply --policy etcd-pool -A --dry-run
  ${io.name} ${module} reapply --all -A --parallel 1 --pause 30

Exit codes: 0 done, 1 some could not be renewed, 2 the call is wrong, 3 the
cluster can't be reached.`,
    )
    .action(async (workloads: readonly string[], options) => {
      const { reapply: run } = await import("./reapply.ts");
      outcome.code = await run(module, workloads, options, io);
    });
}

function parallel(text: string): number {
  const value = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (value < 1) throw new InvalidArgumentError("It must be a whole number from 1 to 99.");
  return value;
}
