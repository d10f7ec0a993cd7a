import { Command, Option } from "commander";
import { loadModules } from "../core/module/declaration.ts";
import { moduleCommands } from "./command/module-commands.ts";
import { installCommands, shaping } from "./install/install-commands.ts";
import type { Io } from "./io.ts";
import { connecting, evaluating, output, port, seconds, several } from "./options.ts";
import { version } from "./version.ts";

/** What a command gives back beside its output. */
export interface Outcome {
  code: number;
}

/** The commands and their flags. What a command does is loaded when it is called: `--help` and mistakes answer at once. */
export function program(io: Io, outcome: Outcome): Command {
  const usher = new Command(io.name)
    .description("Admission and placement controller for Kubernetes: may it come in, and where does it sit.")
    .version(version(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "usher: ")),
    })
    .exitOverride()
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} review deployment.yaml --source examples/cluster --trace
  ${io.name} serve --source examples/cluster
  ${io.name} help USHER-P01

Exit codes: 0 fine, 1 something was refused, 2 the call or the input is wrong,
3 usher itself failed.`,
    );
  serveCommand(usher, io);
  reviewCommand(usher, io, outcome);
  manifestsCommand(usher, io);
  installCommands(usher, io, outcome);
  moduleCommands(usher, io, outcome);
  helpCommand(usher, io);
  return usher;
}

function serveCommand(usher: Command, io: Io): void {
  const serve = usher
    .command("serve")
    .summary("answer admission reviews, for a cluster or with a directory of files as the cluster")
    .description(
      "Serves the webhook over HTTPS, and health and metrics over HTTP on a second port. With --source the directory of YAML or JSON files is the cluster: policies, namespaces, nodes. It is read again whenever a file changes; a file that breaks keeps its last good version. Without --source it is the cluster of the pod that usher runs in, or of a kubeconfig. With --source and --cluster the policies come from the files and all else from the cluster. Prints one line when it is ready, with both addresses. SIGTERM drains, Ctrl-C ends at once; both exit 0.",
    )
    .option("--source <dir>", "a directory of files, or one file, as the cluster")
    .option("--cluster", "follow a live cluster: the default; beside --source, for all but the policies")
    .option(
      "--operate",
      "also lead, write status and events and keep the webhook configurations right (default in a pod, for the cluster that it is in; elsewhere usher only answers)",
    )
    .option("--port <n>", "port of the webhook; 0 picks a free one", port, 8443)
    .option("--ops-port <n>", "port of /livez, /readyz and /metrics; 0 picks a free one", port, 8080)
    .option("--bind <address>", "address to listen on", "127.0.0.1")
    .option(
      "--tls-cert <file>",
      "certificate (PEM), read again when it changes; without it one is made at start",
    )
    .option("--tls-key <file>", "its private key (PEM)")
    .option("--client-ca <file>", "only answer callers with a certificate of this authority (PEM)")
    .option(
      "--drain-seconds <n>",
      "how long to serve on after SIGTERM, so that callers learn of it",
      seconds,
      5,
    )
    .addOption(
      new Option("--log-level <level>", "what to log")
        .choices(["debug", "info", "warn", "error"])
        .default("info"),
    )
    .addOption(output(["text", "json"], "text", "format of the line that says usher is ready"));
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

function reviewCommand(usher: Command, io: Io, outcome: Outcome): void {
  const review = usher
    .command("review")
    .summary("judge manifests offline, exactly as the webhook would")
    .description(
      "Judges manifests, files of several documents, directories and recorded AdmissionReviews: the defaults of the API server, mutate, then validate on the result. What the source does not say is named, not guessed. A recorded AdmissionReview says itself who asks for what, so -n, --as and --operation are not for it.",
    )
    .argument("[file...]", "files or directories; - reads standard input")
    .option("-f, --filename <file>", "the same, as kubectl has it; may be repeated", several)
    .option("--source <dir>", "the cluster: a directory of YAML or JSON, or one file")
    .option("--cluster", "judge against a live cluster instead; nothing in it is changed")
    .option("-n, --namespace <name>", "namespace of objects that name none", "default")
    .option(
      "--as <user>",
      "who asks; system:serviceaccount:NAMESPACE:NAME for a service account",
      "kubernetes-admin",
    )
    .option("--as-group <group>", "a group of who asks; may be repeated", several)
    .addOption(
      new Option("--operation <operation>", "what is asked: CREATE, or UPDATE of what is stored").choices([
        "CREATE",
        "UPDATE",
      ]),
    )
    .option(
      "--old <file>",
      "for UPDATE: the objects as they are stored; those not in it are looked for in the source",
    )
    .option("--trace", "say for each policy why it did or did not apply")
    .option("--emit", "print the manifests with usher's changes instead, without what was refused")
    .addOption(output(["table", "json", "yaml"], "table", "format of the result"));
  evaluating(connecting(review))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} review deployment.yaml --source examples/cluster
  helm template shop ./chart | ${io.name} review - --source examples/cluster -n shop --trace
  ${io.name} review new.yaml --old stored.yaml --source examples/cluster --operation UPDATE
  ${io.name} review manifests/ --source examples/cluster --emit > placed.yaml

Exit codes: 0 nothing was refused, 1 something was, 2 the call, the input or the
source has a mistake (what is right is judged all the same), 3 usher failed.`,
    )
    .action(async (files, options) => {
      const { review: run } = await import("./review/review.ts");
      outcome.code = await run(files, options, io);
    });
}

function manifestsCommand(usher: Command, io: Io): void {
  const manifests = usher
    .command("manifests")
    .summary("print the objects of an installation: what install would apply")
    .description(
      "Prints what runs usher in a cluster and what an API server must know of it, as it follows from what the modules declare. Nothing is applied.",
    )
    .option("--ca-bundle <file>", "certificate authority (PEM) that the API server shall trust")
    .addOption(output(["yaml", "json"], "yaml", "format"));
  evaluating(shaping(manifests))
    .addHelpText("after", `\nExample:\n  ${io.name} manifests | kubectl apply --dry-run=server -f -`)
    .action(async (options) => {
      const { manifests: run } = await import("./install/manifests.ts");
      await run(options, io);
    });
}

function helpCommand(usher: Command, io: Io): void {
  usher
    .command("help")
    .summary("explain a command or an error code")
    .description("Explains a command, or an error code that usher has shown.")
    .argument("[topic]", "a command, a code such as USHER-P01, or codes for a list of them")
    .action(async (topic: string | undefined) => {
      const command = topic === undefined ? usher : usher.commands.find((one) => one.name() === topic);
      if (command !== undefined) {
        command.outputHelp();
        return;
      }
      const { explain } = await import("./help.ts");
      const names = usher.commands.map((one) => one.name());
      io.stdout.write(`${explain(topic ?? "", names, await loadModules(io.modules))}\n`);
    });
}
