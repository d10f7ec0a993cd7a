import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { MUTANTS } from "./mutants.ts";

/** Nothing of a world is left when its run has ended: many seeds need no more memory than one. */
const HEAP = "--max-old-space-size=256";

/** In a process of its own: the simulation replaces clocks and timers. Others go first: it waits for nothing but the processor. */
async function simulated(...args: readonly string[]): Promise<Ended> {
  return started({}, MAIN, ...args);
}

interface Ended {
  readonly code: number;
  readonly text: string;
}

const [HOOK = "", MAIN = ""] = ["./mutate.ts", "./main.ts"].map((file) =>
  fileURLToPath(new URL(file, import.meta.url)),
);

async function started(env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [HEAP, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (text += String(data)));
  const code = await new Promise<number>((resolve) => child.once("close", (status) => resolve(status ?? 3)));
  return { code, text };
}

const LONG = process.env["USHER_LONG"] !== undefined;
/** With the lowest priority, also while a fresh machine builds the control plane. */
const TIMEOUT_MS = LONG ? 36_000_000 : 3_600_000;

/** 50,000 in `npm run test:long`. */
const SEEDS = Number(process.env["USHER_SIMULATION_SEEDS"] ?? 300);

test(
  "the same seed gives the same history, byte for byte, in two processes",
  async () => {
    const args = ["--from", "7", "--seeds", "2", "--digests"];
    const digests = (text: string) => text.match(/^\d+ [0-9a-f]{16} \d+$/gm);
    const [one, other] = await Promise.all([simulated(...args), simulated(...args)]);
    expect(digests(one.text), one.text).toHaveLength(2);
    expect(digests(other.text)).toEqual(digests(one.text));
  },
  TIMEOUT_MS,
);

test(
  "usher keeps its promises in every seed",
  async () => {
    const jobs = LONG ? availableParallelism() : 1;
    const { code, text } = await simulated("--seeds", `${SEEDS}`, "--jobs", `${jobs}`, "--no-shrink");
    expect(code, text).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "usher reaches the end of the reference run after a crash at each write, by an older view, and without cancelling events",
  async () => {
    const { code, text } = await simulated("--plans");
    expect(text).toMatch(/^\d+ plans, 0 failed$/m);
    expect(code, text).toBe(0);
  },
  TIMEOUT_MS,
);

const EARLY = "a lease is acquired before it has expired";

test(
  "the simulation finds a mistake in leader election",
  async () => {
    const { code, text } = await simulated("--mutant", EARLY, "--seeds", "3");
    expect(text).toMatch(/seed \d+ failed: .*(leaders|leads)/);
    expect(code, text).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "a failing seed is shrunk to few calls and faults, and the line that replays it fails in the same way",
  async () => {
    const mistaken = (...args: readonly string[]) =>
      started({ USHER_MUTANT: EARLY }, "--import", HOOK, MAIN, ...args);
    const { code, text } = await mistaken("--seed", "1");
    expect(code, text).toBe(1);
    const failure = /^seed 1 failed: (.*)$/m.exec(text)?.[1];
    const [, calls = "", faults = ""] =
      /^replay: npm run simulate -- --seed 1 --keep-calls "(.*)" --keep-faults "(.*)" --trace$/m.exec(text) ??
      [];
    expect(failure, text).toMatch(/leads|leaders/);
    expect([...calls.split(","), ...faults.split(",")].length, text).toBeLessThanOrEqual(4);
    const replayed = await mistaken(
      "--seed",
      "1",
      "--keep-calls",
      calls,
      "--keep-faults",
      faults,
      "--no-shrink",
    );
    expect(replayed.code, replayed.text).toBe(1);
    expect(/^seed 1 failed: (.*)$/m.exec(replayed.text)?.[1]).toMatch(/leads|leaders/);
    // The mistake is not in usher.
    const sound = await simulated("--seed", "1", "--keep-calls", calls, "--keep-faults", faults);
    expect(sound.code, sound.text).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "several processes report and sum up what one does",
  async () => {
    const [one, two] = await Promise.all([
      simulated("--seeds", "2"),
      simulated("--seeds", "2", "--jobs", "2"),
    ]);
    const sum = /^2 seeds, 0 failed; \d+ events/m;
    expect(sum.exec(two.text)?.[0], two.text).toBe(sum.exec(one.text)?.[0]);
    expect(two.code).toBe(0);
  },
  TIMEOUT_MS,
);

test.each([
  [["--sed", "7"], "unknown option '--sed'"],
  [["--seed", "x"], "It takes a whole number"],
  [["--seeds", "0"], "It takes at least 1"],
  [["--trace", "--jobs", "2"], "cannot be used with option '--trace'"],
  [["--mutant", "none"], "There is no mutant none"],
])(
  "npm run simulate -- %j is a wrong call, and says why",
  async (args, says) => {
    const { code, text } = await simulated(...args);
    expect(text).toContain(says);
    expect(code).toBe(2);
  },
  TIMEOUT_MS,
);

test("every mutant changes a text that its file has once", () => {
  for (const { name, file, text } of MUTANTS) {
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
    expect(source.split(text), name).toHaveLength(2);
  }
});

test("docs/simulation.md lists every mutant with the seed or the plan that finds it", () => {
  const text = readFileSync(new URL("../../docs/simulation.md", import.meta.url), "utf8");
  const rows = [...text.matchAll(/^\| (.+) \| ((?:seed|plan).+) \|$/gm)].map(
    ([, name, by]) => `${name}: ${by}`,
  );
  const by = (found: number | string) => (typeof found === "number" ? `seed ${found}` : `plan: ${found}`);
  expect(rows).toEqual(MUTANTS.map(({ name, found }) => `${name}: ${by(found)}`));
});

if (LONG)
  test(
    "the simulation finds every mutant",
    async () => {
      const { code, text } = await simulated("--mutants", "--seeds", "500");
      expect(code, text).toBe(0);
    },
    TIMEOUT_MS,
  );
