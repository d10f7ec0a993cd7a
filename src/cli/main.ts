#!/usr/bin/env node
import { Command, CommanderError, Option } from "commander";
import { CallError, EXIT } from "./exit.ts";
import { version } from "./version.ts";

/** Options that every command which evaluates takes. */
function evaluating(command: Command): Command {
  return command
    .option("--config <file>", "configuration of the installation (kind UsherConfiguration)")
    .option("--feature-gates <list>", "features to switch, as Name=true,Other=false")
    .option("-q, --quiet", "say nothing but results and errors", false);
}

function program(): Command {
  const usher = new Command("usher")
    .description(
      "Admission and placement controller for Kubernetes: may it come in, and where does it sit.\n\nExit codes: 0 fine, 1 something was denied, 2 the call or the input is wrong, 3 usher itself failed.",
    )
    .version(version(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print help for a command")
    .helpCommand(false)
    .showHelpAfterError("(usher --help lists what there is)")
    .exitOverride();

  evaluating(
    usher
      .command("serve")
      .summary("answer admission reviews, with a directory of files as the cluster")
      .description(
        "Serves the webhook over HTTPS, and health and metrics over HTTP on a second port. The directory of YAML or JSON files is the cluster: policies, namespaces, nodes. It is read again whenever a file changes; a file that breaks keeps its last good version.",
      )
      .option("--source <dir>", "the directory, or one file")
      .option("--port <n>", "port of the webhook; 0 picks a free one", port, 8443)
      .option("--ops-port <n>", "port of /livez, /readyz and /metrics; 0 picks a free one", port, 8080)
      .option("--bind <address>", "address to listen on", "127.0.0.1")
      .option(
        "--tls-cert <file>",
        "certificate (PEM); read again when it changes. Without it one is made at start",
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
      .addOption(output(["text", "json"], "text", "format of the line that says usher is ready"))
      .addHelpText(
        "after",
        "\nExamples:\n  usher serve --source examples/cluster\n  usher serve --source policies/ --port 0 --ops-port 0 -o json\n",
      )
      .action(async (options) => {
        const { serve } = await import("./serve.ts");
        await serve(options);
      }),
  );

  evaluating(
    usher
      .command("review")
      .summary("judge manifests offline, exactly as the webhook would")
      .description(
        "Judges manifests, files of several documents, directories and recorded AdmissionReviews: the defaults of the API server, mutate, then validate on the result. What the source does not say is named, not guessed.",
      )
      .argument("<file...>", "files or directories; - reads standard input")
      .option("--source <dir>", "the cluster: a directory of YAML or JSON, or one file")
      .option("-n, --namespace <name>", "namespace of objects that name none", "default")
      .option("--as <user>", "who asks", "kubernetes-admin")
      .option("--as-group <group>", "a group of who asks; may be repeated", several, [] as string[])
      .addOption(
        new Option("--operation <operation>", "what is asked")
          .choices(["CREATE", "UPDATE"])
          .default("CREATE"),
      )
      .option(
        "--old <file>",
        "for UPDATE: the objects as they are stored. Without it they are looked for in the source",
      )
      .option("--trace", "say for each policy why it did or did not apply", false)
      .option("--emit", "print the manifests with usher's changes instead, without what was denied", false)
      .addOption(output(["table", "json", "yaml"], "table", "format of the result"))
      .addHelpText(
        "after",
        "\nExamples:\n  usher review deployment.yaml --source examples/cluster\n  helm template shop ./chart | usher review - --source examples/cluster -n shop --trace\n  usher review old-and-new/ --source examples/cluster --emit > placed.yaml\n",
      )
      .action(async (files, options) => {
        const { review } = await import("./review.ts");
        process.exitCode = await review(files, options);
      }),
  );

  evaluating(
    usher
      .command("manifests")
      .summary("print the CRDs, RBAC and webhook configurations of an installation")
      .description(
        "Prints what an API server must know of usher, as it follows from what the modules declare. Nothing is applied.",
      )
      .option("--service <name>", "name of the Service in front of usher", "usher")
      .option("--ca-bundle <file>", "certificate authority (PEM) that the API server shall trust")
      .addOption(output(["yaml", "json"], "yaml", "format"))
      .addHelpText("after", "\nExample:\n  usher manifests | kubectl apply --dry-run=server -f -\n")
      .action(async (options) => {
        const { manifests } = await import("./manifests.ts");
        await manifests(options);
      }),
  );

  usher
    .command("help")
    .summary("explain a command or an error code")
    .argument("[topic]", "a command, or a code such as USHER-P01")
    .action(async (topic: string | undefined) => {
      if (topic === undefined || !/^usher-/i.test(topic)) {
        const command = usher.commands.find((one) => one.name() === topic);
        if (topic !== undefined && command === undefined)
          throw new CallError(await unknownTopic(topic, usher));
        process.stdout.write((command ?? usher).helpInformation());
        return;
      }
      const [{ explainCode }, { codesOf }, { modules }] = await Promise.all([
        import("./code.ts"),
        import("../core/codes.ts"),
        import("../modules/index.ts"),
      ]);
      process.stdout.write(`${explainCode(topic, codesOf(modules))}\n`);
    });

  for (const command of usher.commands) command.exitOverride().showHelpAfterError(false);
  return usher;
}

async function unknownTopic(topic: string, usher: Command): Promise<string> {
  const { didYouMean } = await import("../core/suggest.ts");
  const names = usher.commands.map((one) => one.name());
  return `there is no command ${topic}; ${didYouMean(topic, names) ?? `the commands are ${names.join(", ")}`}`;
}

function output(formats: readonly string[], standard: string, description: string): Option {
  return new Option("-o, --output <format>", description).choices(formats).default(standard);
}

function port(text: string): number {
  return whole(text, 65_535, "a port is a whole number from 0 to 65535");
}

function seconds(text: string): number {
  return whole(text, 3_600, "give whole seconds, at most 3600");
}

function whole(text: string, most: number, complaint: string): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= most)) throw new CallError(`${JSON.stringify(text)}: ${complaint}`);
  return value;
}

function several(text: string, before: string[]): string[] {
  return [...before, text];
}

/** Runs a command line; what goes wrong becomes a sentence on stderr and an exit code. */
export async function main(argv: readonly string[]): Promise<void> {
  try {
    await program().parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? EXIT.fine : EXIT.wrong;
    else if (error instanceof CallError) {
      process.stderr.write(`usher: ${error.message}\n`);
      process.exitCode = error.code;
    } else {
      process.stderr.write(
        `usher: this is a fault in usher, please report it: ${error instanceof Error ? error.stack : String(error)}\n`,
      );
      process.exitCode = EXIT.failed;
    }
  }
}

await main(process.argv);
