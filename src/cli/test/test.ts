import { codesOf } from "../../core/module/codes.ts";
import { loadModules } from "../../core/module/declaration.ts";
import { CallError, EXIT } from "../exit.ts";
import type { WorldOptions } from "../foresight/open-world.ts";
import { describeProblems } from "../input/problems.ts";
import type { Io } from "../io.ts";
import { terminal } from "../output/terminal.ts";
import { mutate, scoreOf } from "./mutate.ts";
import { hasErrors, hasFailures, printSuites, type TestedSuite, type TestFormat } from "./print.ts";
import { readSuites } from "./read-suites.ts";
import { SuiteRunner } from "./run-suite.ts";

export interface TestOptions extends WorldOptions {
  readonly mutate?: boolean;
  readonly minScore?: number;
  readonly update?: boolean;
  readonly record?: string;
  readonly output: TestFormat;
  readonly changedOnly?: boolean;
}

/** Runs test suites; returns the exit code. */
export async function test(names: readonly string[], options: TestOptions, io: Io): Promise<number> {
  checkCall(names, options);
  if (options.record !== undefined) {
    const { record } = await import("./record.ts");
    return record(options.record, options, io);
  }
  const screen = terminal(io, options);
  const { minScore = 1, output, changedOnly = false } = options;
  const { suites, problems } = await readSuites(names, { recording: options.update === true });
  for (const text of describeProblems(problems)) screen.complain(text);
  const runner = new SuiteRunner(io, screen, options.kubernetesVersion);
  try {
    const total = suites.reduce((sum, { suite }) => sum + suite.cases.length, 0);
    let done = 0;
    const tested: TestedSuite[] = [];
    for (const file of suites) {
      const result = await runner.run(file, (i) => screen.progress("testing", "cases", done + i, total));
      done += file.suite.cases.length;
      // With a failing case it is unknown which mutants the suite notices.
      const isSound = !hasErrors(result) && !hasFailures(result);
      if (options.mutate !== true || !isSound) tested.push(result);
      else {
        const mutation = await mutate(result, (...step) => screen.progress("testing", "mutants", ...step));
        tested.push({ ...result, mutation });
      }
    }
    screen.endProgress();
    if (options.update === true) return await recordResults(tested);
    const codes = codesOf(await loadModules(io.modules));
    printSuites(tested, { output, minScore, changedOnly, codes }, screen);
    if (options.mutate === true && tested.some(({ mutation }) => mutation === undefined))
      screen.note("mutants are tried once every case of a suite passes without errors");
    if (problems.length > 0 || tested.some(hasErrors)) return EXIT.wrong;
    const isLow = ({ mutation }: TestedSuite) =>
      mutation !== undefined && scoreOf(mutation.mutants) < minScore;
    return tested.some((one) => hasFailures(one) || isLow(one)) ? EXIT.found : EXIT.fine;
  } finally {
    screen.endProgress();
    await runner.stop();
  }

  async function recordResults(tested: readonly TestedSuite[]): Promise<number> {
    const { update } = await import("./update.ts");
    for (const text of describeProblems(
      tested.flatMap((one) => [...one.problems, ...one.cases.flatMap((each) => each.problems)]),
    ))
      screen.complain(text);
    const left = await update(tested, screen);
    for (const one of left)
      screen.complain(`${one}: not recorded: the rows of a table share one expectation; edit it by hand`);
    if (problems.length > 0 || tested.some(hasErrors)) return EXIT.wrong;
    return left.length > 0 ? EXIT.found : EXIT.fine;
  }
}

function checkCall(names: readonly string[], options: TestOptions): void {
  const { record, update, mutate: mutating, minScore, source, cluster, kubeconfig, context } = options;
  const { config, featureGates, namespace, kubernetesVersion } = options;
  if (record !== undefined) {
    if (names.length > 0 || update === true || mutating === true)
      throw new CallError("--record makes a suite: name no suite, and neither --update nor --mutate");
    if ((featureGates ?? kubernetesVersion) !== undefined)
      throw new CallError(
        "--feature-gates and --kubernetes-version can't be recorded: write both into the file of --config",
      );
    return;
  }
  if (names.length === 0) throw new CallError("specify test suites: files or directories");
  if (minScore !== undefined && mutating !== true) throw new CallError("--min-score requires --mutate");
  if (update === true && mutating === true)
    throw new CallError("--update and --mutate are mutually exclusive");
  if ((config ?? featureGates) !== undefined)
    throw new CallError("--config and --feature-gates are for --record: a suite names its configuration");
  if ((source ?? cluster ?? kubeconfig ?? context ?? namespace) !== undefined)
    throw new CallError(
      "--source, --cluster, --kubeconfig, --context and -n are for --record: a suite names its source",
    );
}
