// The speed of the simulation: how many events of whole replicas a second finds room for.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Result } from "../report/result.ts";
import type { Servers } from "../servers/servers.ts";

const SEEDS = { quick: "5", whole: "50" };

/** In a process of its own: the simulation replaces clocks and timers. */
export async function simulation({ quick }: Servers): Promise<Result> {
  const main = fileURLToPath(new URL("../../test/simulation/main.ts", import.meta.url));
  const seeds = quick ? SEEDS.quick : SEEDS.whole;
  const { stdout, status } = spawnSync(process.execPath, [main, "--seeds", seeds, "--no-shrink"], {
    encoding: "utf8",
  });
  const [, events = "0", minutes = "0", seconds = "0", rate = "0"] =
    /; (\d+) events and (\d+) simulated minutes in ([\d.]+) s: (\d+) events/.exec(stdout) ?? [];
  if (status !== 0) throw new Error(`the simulation failed: ${stdout}`);
  const factor = Math.round((60 * Number(minutes)) / Number(seconds));
  return {
    title: "Simulation of whole replicas",
    rows: [
      { what: "simulated events", figure: `${rate}/s`, detail: `${events} events of ${seeds} seeds` },
      { what: "simulated time", figure: `${factor} times as fast as real time` },
    ],
    figures: {
      seeds: Number(seeds),
      events: Number(events),
      minutes: Number(minutes),
      seconds: Number(seconds),
    },
  };
}
