import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { MUTANTS } from "./mutants.ts";

/** In a process of its own: the simulation replaces clocks and timers. */
async function simulated(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly text: string }> {
  const main = fileURLToPath(new URL("./main.ts", import.meta.url));
  const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (text += String(data)));
  const code = await new Promise<number>((resolve) => child.once("close", (status) => resolve(status ?? 3)));
  return { code, text };
}

const LONG = process.env["USHER_LONG"] !== undefined;
const TIMEOUT_MS = LONG ? 36_000_000 : 900_000;

/** 50,000 in `npm run test:long`. A seed takes 0.7 s of CPU time, and `npm test` has a minute for all of this file. */
const SEEDS = Number(process.env["USHER_SIMULATION_SEEDS"] ?? 40);

/** In `npm test` every fourth plan. */
const PLANS = LONG ? "1" : "4";

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
    const parts = LONG ? availableParallelism() : 1;
    const each = Math.ceil(SEEDS / parts);
    const runs = Array.from({ length: parts }, (_, i) =>
      simulated("--from", String(1 + i * each), "--seeds", String(each), "--no-shrink"),
    );
    for (const { code, text } of await Promise.all(runs)) expect(code, text).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "usher reaches the end of the reference run after a crash at each write, by an older view, and without cancelling events",
  async () => {
    const { code, text } = await simulated("--plans", "--every", PLANS);
    expect(text).toMatch(/^\d+ plans, 0 failed$/m);
    expect(code, text).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "the simulation finds mistakes in leader election, and shrinks and replays a seed",
  async () => {
    const mutant = MUTANTS.find(({ name }) => name === "a lease is acquired before it has expired");
    const { code, text } = await simulated("--mutant", mutant?.name ?? "", "--seeds", "3");
    expect(text).toMatch(/seed \d+ failed: .*(leaders|leads)/);
    expect(code, text).toBe(0);
  },
  TIMEOUT_MS,
);

test("every mutant changes a text that its file has once", () => {
  for (const { name, file, text } of MUTANTS) {
    const source = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
    expect(source.split(text), name).toHaveLength(2);
  }
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
