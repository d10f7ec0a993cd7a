/** `npm run simulate`. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Command, InvalidArgumentError, Option } from "commander";
import { MUTANTS, type Mutant } from "./mutants.ts";
import { operatorPlans } from "./operator.ts";
import { plans } from "./plans.ts";
import { type Scenario, scenarioOf } from "./scenario.ts";
import { type Outcome, shrink, simulate, summary } from "./simulate.ts";
import { transitionPlans } from "./transitions.ts";

/** A wrong call ends with this code. */
const WRONG_CALL = 2;

function wholeNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError("It takes a whole number.");
  return Number(text);
}

function positive(text: string): number {
  const number = wholeNumber(text);
  if (number === 0) throw new InvalidArgumentError("It takes at least 1.");
  return number;
}

function indexes(text: string): readonly number[] {
  return text.split(",").filter(Boolean).map(wholeNumber);
}

interface Options {
  readonly seed?: number;
  readonly seeds: number;
  readonly from: number;
  readonly jobs: number;
  readonly trace?: true;
  readonly keepCalls?: readonly number[];
  readonly keepFaults?: readonly number[];
  readonly shrink: boolean;
  readonly plans?: true;
  readonly plan?: string;
  readonly mutants?: true;
  readonly mutant?: string;
  readonly digests?: true;
  readonly firstFailure?: true;
}

const program = new Command("npm run simulate --")
  .description("Runs whole replicas of usher in a simulated cluster in which everything breaks.")
  .option("--seeds <count>", "runs this many seeds", positive, 100)
  .option("--from <seed>", "the first of them", wholeNumber, 1)
  .addOption(
    new Option("--jobs <count>", "in this many processes")
      .argParser(positive)
      .default(1)
      .conflicts(["seed", "trace", "digests", "firstFailure"]),
  )
  .option("--seed <seed>", "runs one seed", wholeNumber)
  .option("--keep-calls <indexes>", "with --seed: only these of its calls", indexes)
  .option("--keep-faults <indexes>", "with --seed: only these of its faults", indexes)
  .option("--no-shrink", "does not look for the fewest calls and faults of a seed that fails")
  .option("--plans", "runs every plan")
  .option("--plan <name>", "runs one plan")
  .option("--mutants", "plants each mistake, and looks for it by seeds, then by plans")
  .option("--mutant <name>", "plants one mistake")
  .option("--trace", "prints the history of each run")
  .addOption(new Option("--digests", "prints a digest of each seed's history").hideHelp())
  .addOption(new Option("--first-failure", "ends at the first failure").hideHelp())
  .addHelpText("after", "\ndocs/simulation.md explains what is simulated, and how to read a history.")
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : WRONG_CALL))
  .parse();
const values = program.opts<Options>();

/** A part of a seed's scenario: shrinking prints the indexes of the calls and faults that are left. */
function partOf(seed: number): Scenario {
  const whole = scenarioOf(seed);
  const pick = <T>(list: readonly T[], kept: readonly number[] | undefined): readonly T[] =>
    kept === undefined ? list : kept.flatMap((i) => list[i] ?? []);
  return {
    ...whole,
    calls: pick(whole.calls, values.keepCalls),
    faults: pick(whole.faults, values.keepFaults),
  };
}

async function report(scenario: Scenario, { failure = "" }: Outcome): Promise<void> {
  console.log(`seed ${scenario.seed} failed: ${failure}`);
  const whole = scenarioOf(scenario.seed);
  let least = scenario;
  if (values.shrink) {
    const kind = kindOf(failure);
    least = await shrink(
      scenario,
      async (smaller) => kindOf((await simulate(smaller)).failure ?? "") === kind,
    );
    console.log(summary(least));
  }
  const key = (one: unknown) => JSON.stringify(one);
  const kept = <T>(list: readonly T[], all: readonly T[]) =>
    all.flatMap((one, i) => (list.some((other) => key(other) === key(one)) ? [i] : [])).join(",");
  console.log(
    `replay: npm run simulate -- --seed ${scenario.seed} --keep-calls "${kept(least.calls, whole.calls)}" --keep-faults "${kept(least.faults, whole.faults)}" --trace`,
  );
}

/** The same violation, with other names and numbers. */
function kindOf(failure: string): string {
  return failure
    .replace(/[0-9]+/g, "N")
    .replace(/usher-[a-c](-N)?/g, "R")
    .slice(0, 60);
}

const [HOOK = "", MAIN = ""] = ["./mutate.ts", "./main.ts"].map((file) =>
  fileURLToPath(new URL(file, import.meta.url)),
);

/** Runs this program again, with a mutant. The first line that reports a failure, if any. */
async function searched(mutant: Mutant, args: readonly string[]): Promise<string | undefined> {
  const child = spawn(process.execPath, ["--import", HOOK, MAIN, ...args, "--first-failure"], {
    env: { ...process.env, USHER_MUTANT: mutant.name },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  const found = output.split("\n").find((line) => line.includes("failed: "));
  // A plan or seed that is gone is searched for again.
  if (code !== 0 && code !== WRONG_CALL && found === undefined) throw new Error(`${mutant.name}: ${errors}`);
  return found;
}

/** By the seed or plan that found it last time; else by many seeds, then by all plans. */
async function finding(mutant: Mutant): Promise<string | undefined> {
  const { found } = mutant;
  const known = typeof found === "number" ? ["--seed", `${found}`] : ["--plan", found];
  const seeds = ["--from", `${values.from}`, "--seeds", `${values.seeds}`];
  return (
    (await searched(mutant, known)) ??
    (await searched(mutant, seeds)) ??
    (await searched(mutant, ["--plans"]))
  );
}

/** One line of a terminal that is written over; the last one is empty. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${text}\u001b[K\r`);
}

if (values.mutants || values.mutant !== undefined) {
  const wanted = MUTANTS.filter(({ name }) => values.mutant === undefined || name === values.mutant);
  if (wanted.length === 0)
    program.error(`There is no mutant ${values.mutant}: docs/simulation.md lists them.`);
  let survivors = 0;
  const waiting = [...wanted];
  const search = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const line = await finding(mutant);
      if (line === undefined) survivors += 1;
      console.log(`${mutant.name}: ${line ?? "not found"}`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, search));
  console.log(`${wanted.length} mutants, ${survivors} not found`);
  process.exit(survivors > 0 ? 1 : 0);
}

if (values.plans || values.plan !== undefined) {
  const trace = values.trace ? (line: string) => console.log(line) : undefined;
  let [runs, wrong] = [0, 0];
  for (const group of [plans, operatorPlans, transitionPlans]) {
    const all = await group().catch((error: Error) => {
      console.log(`plan failed: ${error.message}`);
      process.exit(1);
    });
    for (const { name, check } of all) {
      if (values.plan !== undefined && values.plan !== name) continue;
      runs += 1;
      progress(`plan ${runs}: ${name.slice(0, 100)}`);
      const why = await check(trace);
      progress("");
      if (why === undefined) continue;
      wrong += 1;
      console.log(
        `plan failed: ${name}: ${why}\nreplay: npm run simulate -- --plan ${JSON.stringify(name)} --trace`,
      );
      if (values.firstFailure) process.exit(1);
    }
  }
  if (runs === 0) program.error(`There is no plan ${values.plan}: --plans runs all.`);
  console.log(`${runs} plans, ${wrong} failed`);
  process.exit(wrong > 0 ? 1 : 0);
}

interface Sum {
  failed: number;
  events: number;
  simulatedMs: number;
  realMs: number;
}

/** Runs seeds here, one after the other, and reports those that fail. */
async function runSeeds(first: number, count: number): Promise<Sum> {
  const sum: Sum = { failed: 0, events: 0, simulatedMs: 0, realMs: 0 };
  for (let seed = first; seed < first + count; seed++) {
    const scenario = partOf(seed);
    progress(`seed ${seed}, the last is ${first + count - 1}`);
    const outcome = await simulate(scenario, values.trace ? (line) => console.log(line) : undefined);
    for (const figure of ["events", "simulatedMs", "realMs"] as const) sum[figure] += outcome[figure];
    if (values.digests) console.log(`${seed} ${outcome.digest} ${outcome.events}`);
    if (outcome.failure === undefined) continue;
    sum.failed += 1;
    if (values.firstFailure) {
      console.log(`seed ${seed} failed: ${outcome.failure}`);
      break;
    }
    progress("");
    await report(scenario, outcome);
  }
  progress("");
  return sum;
}

/** Runs seeds in a process of their own, whose reports are printed as they come. Its last line has the sum. */
async function runElsewhere(first: number, count: number): Promise<Sum> {
  const shrinks = values.shrink ? [] : ["--no-shrink"];
  const args = ["--from", `${first}`, "--seeds", `${count}`, ...shrinks];
  const child = spawn(process.execPath, [...process.execArgv, MAIN, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let last = "";
  for await (const line of createInterface({ input: child.stdout })) {
    if (last !== "") console.log(last);
    last = line;
  }
  const sum = SUM.exec(last)?.slice(1).map(Number);
  if (sum === undefined) throw new Error(`seeds from ${first} on: a process ended without a result: ${last}`);
  const [failed = 0, events = 0, minutes = 0, seconds = 0] = sum;
  return { failed, events, simulatedMs: 60_000 * minutes, realMs: 1_000 * seconds };
}

const SUM = /^\d+ seeds, (\d+) failed; (\d+) events and (\d+) simulated minutes in ([\d.]+) s/;

const count = values.seed === undefined ? values.seeds : 1;
const first = values.seed ?? values.from;
const jobs = Math.max(1, Math.min(values.jobs, count));
const each = Math.ceil(count / jobs);
const sums = await Promise.all(
  Array.from({ length: jobs }, (_, i) => {
    const [from, many] = [first + i * each, Math.max(0, Math.min(each, count - i * each))];
    return jobs === 1 ? runSeeds(from, many) : runElsewhere(from, many);
  }),
);
const total = (figure: keyof Sum) => sums.reduce((sum, one) => sum + one[figure], 0);
const [failed, events, seconds] = [total("failed"), total("events"), total("realMs") / 1_000 / jobs];
console.log(
  `${count} seeds, ${failed} failed; ${events} events and ${(total("simulatedMs") / 60_000).toFixed(0)} simulated minutes in ${seconds.toFixed(1)} s: ${Math.round(events / seconds)} events a second`,
);
process.exit(failed > 0 ? 1 : 0);
