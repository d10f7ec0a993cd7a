import { type Command, Option } from "commander";
import type { Io } from "../io.ts";
import {
  CLUSTER,
  calling,
  DIFFERENCES_ONLY,
  directories,
  evaluating,
  KUBERNETES_VERSION,
  output,
  REVIEW_FORMATS,
  Repeatable,
  sourceFlag,
} from "../options.ts";
import type { Outcome } from "../program.ts";

const NOTHING_WRITTEN = "Nothing is written.";
const FORMATS_HELP = "output format; diff shows the changed manifests";

/** `usher diff`, `usher what-if`, `usher explain` and `usher replay`. */
export function foresightCommands(usher: Command, io: Io, outcome: Outcome): void {
  diffCommand(usher, io, outcome);
  whatIfCommand(usher, io, outcome);
  explainCommand(usher, io, outcome);
  replayCommand(usher, io, outcome);
}

/** Flags of every command that reads a cluster and manifests. */
function reading(command: Command): Command {
  return evaluating(
    calling(
      directories(command)
        .addOption(sourceFlag())
        .option(...CLUSTER)
        .option(...KUBERNETES_VERSION),
    ),
  );
}

const EXIT_CODES = `
Exit codes: 0 nothing changes, 1 something does, 2 invalid arguments, input or
source, 3 usher or the cluster failed, or something could not be read.`;

function diffCommand(usher: Command, io: Io, outcome: Outcome): void {
  const diff = usher
    .command("diff")
    .summary("show what an edit of policies would change")
    .description(
      `Evaluates every stored workload with the current and the edited policies: which objects change and how, which are refused, which nodes gain and lose labels, which users go over their limit. Edits are policies of any usher kind, and namespaces with other Pod Security labels. ${NOTHING_WRITTEN}`,
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
    .option(...DIFFERENCES_ONLY)
    .addOption(output(REVIEW_FORMATS, "table", FORMATS_HELP));
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
      `Compares a cluster before and after: manifests, edits of policies, nodes that are added, removed, relabelled, tainted or cordoned, alone or together. Shows workloads that are refused, changed or admitted again, where pods may run by the scheduler's filters, pods that fit nowhere, pools that empty or fill, and running pods that would not be admitted again. With a live cluster new objects are first sent as a server-side dry run, so that other admission counts. ${NOTHING_WRITTEN}`,
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
    .option(...DIFFERENCES_ONLY)
    .addOption(output(REVIEW_FORMATS, "table", FORMATS_HELP));
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

function explainCommand(usher: Command, io: Io, outcome: Outcome): void {
  const explain = usher
    .command("explain")
    .summary("explain what usher did to an object, and why")
    .description(
      `Explains a workload, a node, a namespace, or the text of a refusal: every value that usher set, by which policy and generation, and what it would be today; why other policies do not apply; where its pods may run and why not elsewhere; refusals that events or an audit log recorded; and the object before usher. ${NOTHING_WRITTEN}`,
    )
    .argument("[what...]", "KIND/NAME, such as pod/web or node/worker-1, or the text of a refusal")
    .addOption(new Repeatable("-f, --filename <file>", "manifests to explain instead; - for standard input"))
    .option("-n, --namespace <name>", "namespace of the object (default: default)")
    .option("--audit-log <file>", "audit log of the API server, as JSON lines, to look for refusals in")
    .addOption(output(["table", "json", "yaml"], "table", "output format"));
  reading(explain)
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} explain statefulset/etcd-main -n shop --source examples/drift
  ${io.name} explain -f examples/pods/etcd.yaml --source examples/cluster
  ${io.name} explain node/worker-1 --context staging
  ${io.name} explain "pod team-a/web may not run on node cp-0 (USHER-G01)"

Exit codes: 0 explained, 2 invalid arguments, input or source, or no such
object, 3 usher or the cluster failed, or something could not be read.`,
    )
    .action(async (what, options) => {
      const { explain: run } = await import("./explain.ts");
      outcome.code = await run(what, options, io);
    });
}

function replayCommand(usher: Command, io: Io, outcome: Outcome): void {
  const replay = usher
    .command("replay")
    .summary("evaluate recorded requests with edited policies")
    .description(
      `Evaluates requests of an audit log, or recorded AdmissionReviews, with the current and the edited policies, and prints only differences. From an audit log it uses writes whose object is recorded, at level Request or RequestResponse. ${NOTHING_WRITTEN}`,
    )
    .option("--audit-log <file>", "audit log of the API server, as JSON lines; - for standard input")
    .option("--reviews <path>", "recorded AdmissionReviews: a file or a directory")
    .addOption(
      new Repeatable("-f, --filename <file>", "policies that are added or replaced: files or directories"),
    )
    .addOption(new Repeatable("--remove <kind/name>", "a policy that is removed"))
    .option("-n, --namespace <name>", "namespace of policies without one (default: default)")
    .option(...DIFFERENCES_ONLY)
    .addOption(output(REVIEW_FORMATS, "table", FORMATS_HELP));
  reading(replay)
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} replay --reviews examples/reviews -f examples/what-if/etcd-pool.yaml --source examples/cluster
  ${io.name} replay --audit-log audit.log -f policy.yaml --context staging
${EXIT_CODES}`,
    )
    .action(async (options) => {
      const { replay: run } = await import("./replay.ts");
      outcome.code = await run(options, io);
    });
}
