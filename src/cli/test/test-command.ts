import { type Command, InvalidArgumentError } from "commander";
import type { Io } from "../io.ts";
import {
  CHANGED_ONLY,
  CLUSTER,
  calling,
  evaluating,
  KUBERNETES_VERSION,
  output,
  sourceFlag,
} from "../options.ts";
import type { Outcome } from "../program.ts";

/** `usher test` */
export function testCommand(usher: Command, io: Io, outcome: Outcome): void {
  const test = usher
    .command("test")
    .summary("run test suites of policies, and show that they can fail")
    .description(
      "Runs suites (kind TestSuite): each case judges an object exactly as the webhook would, and compares the decision with the expected one. A case that names no object, an expectation that holds without any policy, and a policy that no case touches are errors. With --mutate every policy, selector, criterion, entry and limit is removed or weakened in turn, and those that no case notices are named. With --record a suite is made of what the policies of a cluster, or of --source, decide about its workloads. Nothing is written to a cluster.",
    )
    .argument("[suite...]", "files or directories")
    .option("--mutate", "weaken the policies one thing at a time, and name what no case notices")
    .option(
      "--min-score <n>",
      "with --mutate: exit with 1 below this part of noticed mutants (default: 1)",
      score,
    )
    .option("--update", "write the current results into the suites, and print the difference")
    .option(
      "--record <dir>",
      "write a suite of what policies decide about existing workloads into a new directory",
    )
    .addOption(
      sourceFlag("with --record: read a directory of YAML or JSON files, or one file, as the cluster"),
    )
    .option(CLUSTER[0], "with --record: read a live cluster (the default without --source)")
    .option("-n, --namespace <name>", "with --record: only workloads of this namespace")
    .option(...KUBERNETES_VERSION)
    .option(...CHANGED_ONLY)
    .addOption(
      output(
        ["table", "wide", "json", "yaml", "junit", "sarif", "markdown", "diff", "github"],
        "table",
        "output format; diff shows the expected and the real manifest of failing cases",
      ),
    );
  evaluating(calling(test))
    .addHelpText(
      "after",
      `
Examples:
  ${io.name} test examples/cluster
  ${io.name} test examples/cluster --mutate
  ${io.name} test policies/ --mutate --min-score 0.9 -o junit
  ${io.name} test policies/suite.yaml --update
  ${io.name} test --record suites/staging --context staging -n shop

Exit codes: 0 all cases pass, 1 some fail, or the score is too low, 2 invalid
arguments, suites or policies, 3 usher or the cluster failed.`,
    )
    .action(async (suites, options) => {
      const { test: run } = await import("./test.ts");
      outcome.code = await run(suites, options, io);
    });
}

function score(text: string): number {
  const value = /^(?:0|1|0?\.[0-9]{1,6}|1\.0{1,6})$/.test(text) ? Number(text) : Number.NaN;
  if (!(value <= 1)) throw new InvalidArgumentError("It must be from 0 to 1.");
  return value;
}
