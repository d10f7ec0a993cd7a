import { Argument, Command, Option } from "commander";
import { loadModules } from "../core/module/declaration.ts";
import { moduleCommands, namesOf } from "./command/module-commands.ts";
import { COMPLETION_SCRIPTS, COMPLETION_SHELLS } from "./completion/scripts.ts";
import { foresightCommands } from "./foresight/foresight-commands.ts";
import { CI_SYSTEMS } from "./init/ci.ts";
import { installCommands, shaping } from "./install/install-commands.ts";
import type { Io } from "./io.ts";
import {
  CHANGED_ONLY,
  CLUSTER,
  calling,
  connecting,
  evaluating,
  KUBERNETES_VERSION,
  logLevel,
  output,
  port,
  REVIEW_FORMATS,
  Repeatable,
  reading,
  seconds,
  sourceFlag,
} from "./options.ts";
import { testCommand } from "./test/test-command.ts";
import { version } from "./version.ts";

/** The result of a command beside its output. */
export interface Outcome {
  code: number;
}

/** The commands and their flags. The code of a command is loaded when it runs, so that `--help` and usage errors are fast. */
export function program(io: Io, outcome: Outcome): Command {
  const usher = new Command(io.name)
    .description("Admission and placement controller for Kubernetes.")
    .version(version(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "usher: ")),
    })
    .showHelpAfterError("Add --help to see the usage.")
    .exitOverride()
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} review examples/pods/etcd.yaml --source examples/cluster --trace
  ${io.name} serve --source examples/cluster
  ${io.name} help USHER-P01

Exit codes: 0 success, 1 found something, 2 invalid arguments or input,
3 usher or the cluster failed.`,
    );
  serveCommand(usher, io);
  dashboardCommand(usher, io);
  reviewCommand(usher, io, outcome);
  testCommand(usher, io, outcome);
  lintCommand(usher, io, outcome);
  compileCommand(usher, io, outcome);
  foresightCommands(usher, io, outcome);
  manifestsCommand(usher, io);
  installCommands(usher, io, outcome);
  watchdogCommand(usher, io);
  operatorCommand(usher, io);
  moduleCommands(usher, io, outcome);
  initCommand(usher, io);
  schemaCommand(usher, io);
  completionCommand(usher, io);
  versionCommand(usher, io);
  helpCommand(usher, io);
  return usher;
}

const OPS_PORT_HELP = "port of /livez, /readyz and /metrics; 0 chooses a free one";
const BIND_HELP = "address to listen on";

function serveCommand(usher: Command, io: Io): void {
  const serve = usher
    .command("serve")
    .summary("serve the admission webhook, for a cluster or from files")
    .description(
      "Serves the webhook over HTTPS, and health and metrics over HTTP on a second port. With --source, a directory of YAML or JSON files is the cluster: policies, namespaces, nodes. Files are reloaded when they change; an invalid file keeps its last good version. Without --source, the cluster is that of the pod that usher runs in, or of a kubeconfig. With --source and --cluster, policies come from files and everything else from the cluster. Prints one line with both addresses when ready. SIGTERM drains, Ctrl-C stops at once; both exit 0.",
    )
    .addOption(sourceFlag())
    .option("--cluster", "watch a live cluster (the default); with --source, for everything but policies")
    .option(
      "--operate",
      "also run leader election, write status and events, and manage webhook configurations (default in a pod, for its own cluster)",
    )
    .option("--port <n>", "port of the webhook; 0 chooses a free one", port, 8443)
    .option("--ops-port <n>", OPS_PORT_HELP, port, 8080)
    .option("--bind <address>", BIND_HELP, "127.0.0.1")
    .option(
      "--tls-cert <file>",
      "serving certificate (PEM), reloaded when it changes (default: generated at start)",
    )
    .option("--tls-key <file>", "private key of the certificate (PEM)")
    .option("--client-ca <file>", "require client certificates of this CA (PEM)")
    .option(
      "--drain-seconds <n>",
      "seconds to keep serving after SIGTERM, so that clients notice",
      seconds,
      5,
    )
    .addOption(logLevel())
    .addOption(output(["text", "json"], "text", "format of the ready line"));
  evaluating(connecting(serve))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} serve --source examples/cluster
  ${io.name} serve --source policies/ --port 0 --ops-port 0 -o json
  ${io.name} serve --source policies/ --tls-cert tls.crt --tls-key tls.key --bind 0.0.0.0
  ${io.name} serve --context staging --port 0 --ops-port 0
  ${io.name} serve --source policies/ --cluster --context staging`,
    )
    .action(async (options) => {
      const { serve: run } = await import("./serve/serve.ts");
      await run(options, io);
    });
}

function dashboardCommand(usher: Command, io: Io): void {
  const dashboard = usher
    .command("dashboard")
    .summary("show nodes, pods and policies in a browser")
    .description(
      "Serves a page on 127.0.0.1: which pods are on which nodes, by which policy, whether they may be there, and what an edit would change. It reads the cluster of a kubeconfig with your rights, or files with --source, and writes nothing. Data of Secrets and values of environment variables are not shown. Prints an address that works once and opens a session for this browser. Ends with Ctrl-C.",
    )
    .addOption(sourceFlag())
    .option("--port <n>", "port of the page; 0 chooses a free one", port, 8090)
    .option("--open", "open the page in the browser")
    .option(
      "--decisions <url>",
      "with --source: show the decisions of a server on the same files, by its address of health and metrics",
    )
    .addOption(output(["text", "json"], "text", "format of the ready line"));
  evaluating(calling(dashboard))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} dashboard --source examples/cluster
  ${io.name} dashboard --context staging --open
  ${io.name} dashboard --source policies/ --decisions http://127.0.0.1:8080`,
    )
    .action(async (options) => {
      const { dashboard: run } = await import("./dashboard/dashboard.ts");
      await run(options, io);
    });
}

function reviewCommand(usher: Command, io: Io, outcome: Outcome): void {
  const review = usher
    .command("review")
    .summary("evaluate manifests exactly as the webhook would")
    .description(
      "Evaluates manifests, files with several documents, directories and recorded AdmissionReviews: the API server's defaults, mutate, then validate on the result. Objects count together, in the order given. Policies and objects are those of --source, or of the kubeconfig's cluster, by the configuration of its installation; nothing is changed there. Facts that the source does not contain are reported as unknown, not guessed. -n, --as and --operation do not apply to recorded AdmissionReviews.",
    )
    .argument("[file...]", "files or directories; - for standard input")
    .addOption(sourceFlag())
    .option(...CLUSTER)
    .option(...KUBERNETES_VERSION)
    .option("-n, --namespace <name>", "namespace of objects without one (default: default)")
    .option(
      "--as <user>",
      "user of the request; system:serviceaccount:NAMESPACE:NAME for a service account",
      "kubernetes-admin",
    )
    .addOption(new Repeatable("--as-group <group>", "group of the user"))
    .addOption(
      new Option("--operation <operation>", "operation of the request").choices(["CREATE", "UPDATE"]),
    )
    .option("--old <file>", "stored objects, for UPDATE (default: from the source)")
    .option("--trace", "explain for each policy why it did or did not apply")
    .option(
      "--strict",
      "treat unknown kinds and fields, wrong types and removed API versions, policies without a namespace, a source without policies, and unknown facts as errors",
    )
    .addOption(
      new Option("--fail-on <severity>", "exit with 1 for warnings too, not only for denials").choices([
        "warning",
      ]),
    )
    .option("--emit", "print the manifests with usher's changes, without denied objects")
    .option("--changed-only", "leave out objects that are allowed unchanged and without warnings")
    .addOption(output(REVIEW_FORMATS, "table", "output format; diff shows the changes of manifests"));
  evaluating(calling(reading(review)))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} review examples/pods/etcd.yaml --source examples/cluster
  ${io.name} review examples/node-labels/nodes.yaml --source examples/node-labels --trace
  helm template shop ./chart | ${io.name} review - --source policies/ -n shop --trace
  ${io.name} review manifests/ --source policies/ --cluster --context staging
  ${io.name} review new.yaml --old stored.yaml --source policies/
  ${io.name} review manifests/ --source policies/ --strict
  ${io.name} review examples/pods/ --source examples/cluster --emit

Exit codes: 0 all objects are allowed, 1 some are denied, or pods of theirs, or
with --fail-on warning there are warnings, 2 invalid arguments, input or source
(valid objects are evaluated nevertheless), 3 usher or the cluster failed.`,
    )
    .action(async (files, options) => {
      const { review: run } = await import("./review/review.ts");
      outcome.code = await run(files, options, io);
    });
}

function lintCommand(usher: Command, io: Io, outcome: Outcome): void {
  const lint = usher
    .command("lint")
    .summary("check policies and configuration alone")
    .description(
      "Checks policies of every kind and configurations of usher, without a cluster: their schema, the checks of the webhook, selectors that can match nothing, rules that can never count, policies that contradict each other, deprecated spellings and duplicates. Namespaces and nodes beside them count; other objects are left alone. Each problem has a code, its line and column, and a fix where only one can be meant.",
    )
    .argument("[file...]", "files or directories; - for standard input")
    .option(...KUBERNETES_VERSION)
    .option("--fix", "correct the files where that is safe; comments and layout stay")
    .addOption(
      new Option("--fail-on <severity>", "exit with 1 for warnings too, not only for errors").choices([
        "warning",
      ]),
    )
    .option(...CHANGED_ONLY)
    .addOption(
      output(["text", ...REVIEW_FORMATS], "text", "output format; diff shows what --fix would change"),
    );
  evaluating(reading(lint))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} lint examples/cluster
  ${io.name} lint policies/ --fix
  ${io.name} lint policies/ usher.yaml --fail-on warning -o sarif > usher.sarif

Exit codes: 0 no errors, 1 some, or with --fail-on warning there are warnings,
2 invalid arguments, or a file that can't be read, 3 usher failed.`,
    )
    .action(async (files, options) => {
      const { lint: run } = await import("./lint/lint.ts");
      outcome.code = await run(files, options, io);
    });
}

function compileCommand(usher: Command, io: Io, outcome: Outcome): void {
  const compile = usher
    .command("compile")
    .summary("print policies as objects that the API server evaluates by itself")
    .description(
      "Prints policies of every module as MutatingAdmissionPolicies and ValidatingAdmissionPolicies with their bindings, for clusters that need no webhook. A table on stderr says of each policy whether it is compiled whole, in part or not, and what is left out and why. Nothing is applied.",
    )
    .addOption(sourceFlag())
    .addOption(new Repeatable("-f, --filename <file>", "the same, as in kubectl"))
    .option(...CLUSTER)
    .option(...KUBERNETES_VERSION)
    .option(
      "--static <dir>",
      "write files for an API server that reads policies from its disk (Kubernetes 1.37) into this folder",
    )
    .option(
      "--static-path <path>",
      "path of that folder on control-plane nodes (default: /etc/kubernetes/usher)",
    )
    .option("--report", "print only the report: a table, or with -o json or yaml for programs")
    .addOption(
      new Option(
        "-o, --output <format>",
        "output format; table prints only the report (default: yaml)",
      ).choices(["yaml", "json", "table"]),
    );
  evaluating(calling(compile))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} compile --source examples/cluster
  ${io.name} compile --source examples/cluster -o table
  ${io.name} compile -f policies/gpu.yaml | kubectl apply --dry-run=server -f -
  ${io.name} compile --cluster --static ./usher

Exit codes: 0 every policy is compiled whole, 1 some are not, or in part, 2
invalid arguments or source, 3 usher or the cluster failed.`,
    )
    .action(async (options) => {
      const { compile: run } = await import("./compile/compile.ts");
      outcome.code = await run(options, io);
    });
}

function manifestsCommand(usher: Command, io: Io): void {
  const manifests = usher
    .command("manifests")
    .summary("print the objects that install would apply")
    .description(
      "Prints all objects of an installation: the Deployment, and the CRDs and RBAC that modules declare. Webhook configurations are not included: usher writes them at run time, as policies need them. With --webhooks they are printed instead, for an installation with manageWebhooks: false. Nothing is applied.",
    )
    .option("--webhooks", "print the webhook configurations instead")
    .option("--operator <module>", "print the objects of a module's operator instead")
    .addOption(
      sourceFlag("policies that the webhooks follow: a directory of YAML or JSON files, or one file"),
    )
    .option("--ca-bundle <file>", "CA certificate (PEM) of the webhooks")
    .option(
      "--path-token <token>",
      "first segment of their paths, 40 hexadecimal digits (default with manageWebhooks: false: a new one)",
    )
    .addOption(output(["yaml", "json"], "yaml", "output format"));
  evaluating(shaping(manifests))
    .addHelpText(
      "after",
      `\nExamples:\n  ${io.name} manifests | kubectl apply --dry-run=server -f -\n  ${io.name} manifests --webhooks --source policies/ --ca-bundle ca.pem`,
    )
    .action(async (options) => {
      const { manifests: run } = await import("./install/manifests.ts");
      await run(options, io);
    });
}

function watchdogCommand(usher: Command, io: Io): void {
  const watchdog = usher
    .command("watchdog")
    .summary("open webhooks while no replica of usher is ready")
    .description(
      "Watches the replicas of an installation. Once none was ready for spec.watchdog.openAfterSeconds of the configuration, fail-closed webhooks that may be opened are opened; a ready replica closes them. After spec.watchdog.fallbackAfterSeconds compiled policies stand in for webhooks of modules that keep such. The Deployment usher-watchdog runs it. Serves its health and metrics over HTTP. Ends on SIGTERM.",
    )
    .option("--ops-port <n>", OPS_PORT_HELP, port, 8080)
    .option("--bind <address>", BIND_HELP, "127.0.0.1")
    .addOption(logLevel());
  evaluating(connecting(watchdog))
    .addHelpText("after", `\nExample:\n  ${io.name} watchdog --config usher.yaml --context staging`)
    .action(async (options) => {
      const { watchdog: run } = await import("./watchdog/watchdog.ts");
      await run(options, io);
    });
}

function operatorCommand(usher: Command, io: Io): void {
  const operator = usher
    .command("operator")
    .summary("manage the operand of a module's custom resource")
    .description(
      "Manages an operand in the cluster, apart from usher's own replicas: its workload, configuration, certificate, roles and webhook follow the custom resource, and edited or deleted objects are restored. Several may run; one leads. Ends on SIGTERM; the operand keeps running.",
    )
    .argument("<module>", "the module whose operand is managed")
    .option("-q, --quiet", "print only results and errors")
    .addOption(logLevel());
  connecting(operator).action(async (module: string, options) => {
    const { operator: run } = await import("./operator/operator.ts");
    await run(module, options, io);
  });
}

function initCommand(usher: Command, io: Io): void {
  usher
    .command("init")
    .summary("write a first policy, its test suite and a CI step")
    .description(
      "Writes policies/NAME.yaml, policies/NAME.suite.yaml and the step of a CI system that lints and tests them. Without a kind it asks on a terminal; elsewhere defaults count. Overwrites nothing: where one of the files exists, none is written.",
    )
    .argument("[kind]", "kind of the policy (default: ClusterPodSchedulingPolicy)")
    .option("--name <name>", "name of the policy")
    .option("--directory <dir>", "directory to write into", ".")
    .addOption(new Option("--ci <system>", "CI system whose step is written").choices(CI_SYSTEMS))
    .addHelpText(
      "after",
      `\nExamples:\n  ${io.name} init\n  ${io.name} init labels --name edge-nodes --ci gitlab --directory repo`,
    )
    .action(async (kind: string | undefined, options) => {
      const { init: run } = await import("./init/init.ts");
      await run(kind, options, io);
    });
}

function schemaCommand(usher: Command, io: Io): void {
  usher
    .command("schema")
    .summary("describe the kinds of usher and their fields")
    .description(
      "Describes a kind or a field of it, as kubectl explain does, without a cluster; without a kind, lists the kinds. With -o json it is the JSON Schema, for editors and other tools; without a kind one schema for files of any content.",
    )
    .argument("[kind]", "a kind, its plural or short name, and the path of a field: cpsp.spec.tolerations")
    .option("--recursive", "list the fields of fields as well")
    .addOption(output(["table", "json", "yaml"], "table", "output format"))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} schema
  ${io.name} schema clusterpodschedulingpolicy.spec.tolerations
  ${io.name} schema labels -o json`,
    )
    .action(async (kind: string | undefined, options) => {
      const { schema: run } = await import("./schema/schema.ts");
      await run(kind, options, io);
    });
}

function completionCommand(usher: Command, io: Io): void {
  usher
    .command("completion")
    .summary("print the completion of a shell")
    .description(
      "Prints a script that completes commands, flags, kinds, error codes, contexts, and namespaces and policies of --source, in bash, zsh or fish.",
    )
    .addArgument(new Argument("<shell>", "the shell").choices(COMPLETION_SHELLS))
    .addHelpText(
      "after",
      `
Examples:
  source <(${io.name} completion bash)
  source <(${io.name} completion zsh)
  ${io.name} completion fish | source`,
    )
    .action((shell: (typeof COMPLETION_SHELLS)[number]) => {
      io.stdout.write(COMPLETION_SCRIPTS[shell]);
    });
}

function versionCommand(usher: Command, io: Io): void {
  usher
    .command("version")
    .summary("print the version")
    .description("Prints the version of this program, without a call to a cluster.")
    .addOption(output(["text", "json"], "text", "output format"))
    .addHelpText("after", `\nExample:\n  ${io.name} version -o json`)
    .action(({ output: format }: { readonly output: "text" | "json" }) => {
      const text = format === "json" ? JSON.stringify({ version: version() }) : version();
      io.stdout.write(`${text}\n`);
    });
}

function helpCommand(usher: Command, io: Io): void {
  usher
    .command("help")
    .summary("explain a command or an error code")
    .description("Explains a command or an error code.")
    .argument("[topic...]", "a command, an error code such as USHER-P01, or codes to list all")
    .addHelpText("after", `\nExamples:\n  ${io.name} help placement status\n  ${io.name} help USHER-P01`)
    .action(async (topic: readonly string[]) => {
      let command = usher;
      for (const [i, name] of topic.entries()) {
        const found = command.commands.find((one) => one.name() === name);
        if (found === undefined) {
          const { explain, unknownCommand } = await import("./help.ts");
          const names = namesOf(command);
          if (i > 0) throw unknownCommand([io.name, ...topic.slice(0, i)].join(" "), name, names);
          io.stdout.write(`${explain(name, names, await loadModules(io.modules))}\n`);
          return;
        }
        command = found;
      }
      command.outputHelp();
    });
}
