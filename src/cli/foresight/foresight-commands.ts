import { type Command, Option } from "commander";
import type { Io } from "../io.ts";
import { CLUSTER, calling, evaluating, output, Repeatable, sourceFlag } from "../options.ts";
import type { Outcome } from "../program.ts";

const NOTHING_WRITTEN = "Nothing is written.";

/** `usher diff`, `usher what-if`, `usher explain` and `usher replay`. */
export function foresightCommands(usher: Command, io: Io, outcome: Outcome): void {
  diffCommand(usher, io, outcome);
  whatIfCommand(usher, io, outcome);
}

/** Flags of every command that compares two views. */
function reading(command: Command): Command {
  return evaluating(calling(command.addOption(sourceFlag()).option(...CLUSTER)));
}

const EXIT_CODES = `
Exit codes: 0 nothing changes, 1 something does, 2 invalid arguments, input or
source, 3 usher or the cluster failed, or something could not be read.`;

function diffCommand(usher: Command, io: Io, outcome: Outcome): void {
  const diff = usher
    .command("diff")
    .summary("show what an edit of policies would change")
    .description(
      `Judges every stored workload by the policies as they are and as they would be after the edit: which objects change and how, which are refused, which nodes gain and lose labels, which users go over their limit. Edits are policies of any kind of usher's, and namespaces with other Pod Security labels. ${NOTHING_WRITTEN}`,
    )
    .addOption(
      new Repeatable(
        "-f, --filename <file>",
        "policies that are added or replaced: files or directories, - for standard input",
      ),
    )
    .addOption(
      new Repeatable(
        "--remove <kind/name>",
        "a policy that is removed; KIND/NAMESPACE/NAME for one in a namespace",
      ),
    )
    .option("-n, --namespace <name>", "look only at workloads of this namespace (default: all)")
    .addOption(
      output(
        ["table", "wide", "json", "yaml", "markdown", "diff"],
        "table",
        "output format; diff shows the changed manifests",
      ),
    );
  reading(diff)
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} diff -f examples/what-if/etcd-pool.yaml --source examples/cluster --source examples/pods/etcd.yaml
  ${io.name} diff --remove clusterpodschedulingpolicy/zone-a --source examples/cluster --source examples/pods/etcd.yaml
  ${io.name} diff -f policy.yaml --context staging -o diff
${EXIT_CODES}`,
    )
    .action(async (options) => {
      const { diff: run } = await import("./compare-worlds.ts");
      outcome.code = await run(options, io);
    });
}

function whatIfCommand(usher: Command, io: Io, outcome: Outcome): void {
  const whatIf = usher
    .command("what-if")
    .summary("show what happens to workloads and nodes if something changes")
    .description(
      `Compares a cluster before and after: manifests, edits of policies, nodes that come, go, or are relabelled, tainted or cordoned, alone or together. Shows what is refused, changed and admitted again, where pods may run by the scheduler's filters, pods that fit nowhere, pools that empty or fill, and running pods that would not be admitted again. With a live cluster new objects are first sent as a server-side dry run, so that other admission counts. ${NOTHING_WRITTEN}`,
    )
    .argument("[file...]", "manifests and edits of policies: files or directories; - for standard input")
    .addOption(new Repeatable("-f, --filename <file>", "the same, as in kubectl"))
    .addOption(
      new Repeatable(
        "--remove <kind/name>",
        "an object that is removed: a policy, node, namespace or workload",
      ),
    )
    .addOption(new Repeatable("--cordon <node>", "a node that is cordoned"))
    .option(
      "-n, --namespace <name>",
      "namespace of objects without one, and of the workloads to look at (default: all)",
    )
    .option(
      "--pool-label <key>",
      "node label that names the pool (default: the first known one, such as pool)",
    )
    .addOption(
      new Option("--server-dry-run <when>", "whether new objects are sent to the API server as a dry run")
        .choices(["auto", "never"])
        .default("auto"),
    )
    .addOption(output(["table", "wide", "json", "yaml", "markdown"], "table", "output format"));
  reading(whatIf)
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} what-if examples/what-if/etcd-pool.yaml --source examples/cluster --source examples/pods/etcd.yaml
  ${io.name} what-if --cordon batch-0 --source examples/cluster --source examples/pods/etcd.yaml
  ${io.name} what-if --remove node/worker-1 -f new-nodes.yaml --context staging -o markdown
${EXIT_CODES}`,
    )
    .action(async (files, options) => {
      const { whatIf: run } = await import("./compare-worlds.ts");
      outcome.code = await run(files, options, io);
    });
}
