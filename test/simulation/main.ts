/** `npm run simulate`. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { MUTANTS, type Mutant } from "./mutants.ts";
import { type Scenario, scenarioOf } from "./scenario.ts";
import { type Outcome, shrink, simulate, summary } from "./simulate.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    seeds: { type: "string" },
    from: { type: "string", default: "1" },
    trace: { type: "boolean", default: false },
    digests: { type: "boolean", default: false },
    "keep-calls": { type: "string" },
    "keep-faults": { type: "string" },
    "no-shrink": { type: "boolean", default: false },
    plans: { type: "boolean", default: false },
    plan: { type: "string" },
    every: { type: "string", default: "1" },
    mutants: { type: "boolean", default: false },
    mutant: { type: "string" },
    "first-failure": { type: "boolean", default: false },
  },
});

const indexes = (text: string | undefined, length: number): number[] =>
  text === undefined ? Array.from({ length }, (_, i) => i) : text.split(",").filter(Boolean).map(Number);

/** A part of a seed's scenario: shrinking prints the indexes of the calls and faults that are left. */
function partOf(seed: number): Scenario {
  const whole = scenarioOf(seed);
  const pick = <T>(list: readonly T[], text: string | undefined): T[] =>
    indexes(text, list.length).flatMap((i) => list[i] ?? []);
  return {
    ...whole,
    calls: pick(whole.calls, values["keep-calls"]),
    faults: pick(whole.faults, values["keep-faults"]),
  };
}

async function report(scenario: Scenario, { failure = "" }: Outcome): Promise<void> {
  console.log(`seed ${scenario.seed} failed: ${failure}`);
  const whole = scenarioOf(scenario.seed);
  let least = scenario;
  if (!values["no-shrink"]) {
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

/** Runs this program again, with a mutant. The first line that reports a failure, if any. */
function searched(mutant: Mutant, args: readonly string[]): string | undefined {
  const [hook, main] = ["./mutate.ts", "./main.ts"].map((file) =>
    fileURLToPath(new URL(file, import.meta.url)),
  );
  const env = { ...process.env, USHER_MUTANT: mutant.name };
  const options = { env, encoding: "utf8" as const };
  const child = spawnSync(
    process.execPath,
    ["--import", hook ?? "", main ?? "", ...args, "--first-failure"],
    options,
  );
  if (child.status !== 0 && child.status !== 1) throw new Error(`${mutant.name}: ${child.stderr}`);
  return child.stdout.split("\n").find((line) => line.includes("failed: "));
}

if (values.mutants || values.mutant !== undefined) {
  const wanted = MUTANTS.filter(({ name }) => values.mutant === undefined || name === values.mutant);
  let survivors = 0;
  for (const mutant of wanted) {
    const seeds = ["--from", values.from, "--seeds", values.seeds ?? "100"];
    const line = searched(mutant, seeds) ?? searched(mutant, ["--plans"]);
    if (line === undefined) survivors += 1;
    console.log(`| ${mutant.name} | ${line ?? "not found"} |`);
  }
  console.log(`${wanted.length} mutants, ${survivors} not found`);
  process.exit(survivors > 0 ? 1 : 0);
}

if (values.plans || values.plan !== undefined) {
  const { plans } = await import("./plans.ts");
  const { all, check } = await plans().catch((error: Error) => {
    console.log(`plan failed: ${error.message}`);
    process.exit(1);
  });
  let wrong = 0;
  const every = Number(values.every);
  const chosen = all.filter(({ name }, i) =>
    values.plan === undefined ? i % every === 0 : name === values.plan,
  );
  if (chosen.length === 0) {
    console.error(`there is no plan ${values.plan}; --plans runs all`);
    process.exit(2);
  }
  for (const plan of chosen) {
    const why = await check(plan);
    if (values.plan !== undefined && values.trace) await simulate(plan.scenario, (line) => console.log(line));
    if (why === undefined) continue;
    wrong += 1;
    console.log(
      `plan failed: ${plan.name}: ${why}\nreplay: npm run simulate -- --plan ${JSON.stringify(plan.name)} --trace`,
    );
    if (values["first-failure"]) break;
  }
  let runs = chosen.length;
  if (values.plan === undefined && (wrong === 0 || !values["first-failure"])) {
    const { checkOperator } = await import("./operator.ts");
    const operator = await checkOperator(every);
    runs += operator.runs;
    wrong += operator.failures.length;
    for (const why of operator.failures) console.log(`plan failed: operator: ${why}`);
    const { checkTransitions } = await import("./transitions.ts");
    // Each costs two runs.
    const moved = await checkTransitions(every === 1 ? 1 : 2 * every);
    runs += moved.runs;
    wrong += moved.failures.length;
    for (const why of moved.failures) console.log(`plan failed: configuration: ${why}`);
  }
  console.log(`${runs} plans, ${wrong} failed`);
  process.exit(wrong > 0 ? 1 : 0);
}

const single = values.seed === undefined ? undefined : Number(values.seed);
const count = single === undefined ? Number(values.seeds ?? 100) : 1;
const first = single ?? Number(values.from);
if (!Number.isInteger(first) || !Number.isInteger(count)) {
  console.error("--seed, --seeds and --from take whole numbers");
  process.exit(2);
}
let failed = 0;
let [events, simulated, real] = [0, 0, 0];
for (let seed = first; seed < first + count; seed++) {
  const scenario = partOf(seed);
  const outcome = await simulate(scenario, values.trace ? (line) => console.log(line) : undefined);
  events += outcome.events;
  simulated += outcome.simulatedMs;
  real += outcome.realMs;
  if (values.digests) console.log(`${seed} ${outcome.digest} ${outcome.events}`);
  if (outcome.failure === undefined) continue;
  failed += 1;
  if (values["first-failure"]) {
    console.log(`seed ${seed} failed: ${outcome.failure}`);
    break;
  }
  await report(scenario, outcome);
}
console.log(
  `${count} seeds, ${failed} failed; ${events} events and ${(simulated / 60_000).toFixed(0)} simulated minutes in ${(real / 1_000).toFixed(1)} s: ${Math.round(events / (real / 1_000))} events a second`,
);
process.exit(failed > 0 ? 1 : 0);
