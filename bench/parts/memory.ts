// Usher's memory once it has read everything and serves nothing.
import { setTimeout as sleep } from "node:timers/promises";
import { SIZES } from "../fixtures/policies.ts";
import { count, mebibytes } from "../report/number.ts";
import { atMost, type Result } from "../report/result.ts";
import { scrape, seriesOf } from "../servers/scrape.ts";
import type { Servers } from "../servers/servers.ts";

const LIMIT_MIB = 250;
/** By then memory that only reading needed must have been released. */
const IDLE_SECONDS = { full: 60, quick: 5 };

export async function memory(servers: Servers): Promise<Result> {
  const most = Math.max(...SIZES);
  const usher = await servers.usher(most);
  const resident = async () => seriesOf(await scrape(usher), "process_resident_memory_bytes");
  const first = await resident();
  const wait = servers.quick ? IDLE_SECONDS.quick : IDLE_SECONDS.full;
  servers.say(`waiting ${wait} s for the memory of usher with ${most} policies to fall …`);
  await sleep(wait * 1_000);
  const idle = await resident();
  return {
    title: "Resident memory",
    rows: [
      { what: `${count(most)} policies, when ready`, figure: mebibytes(first) },
      {
        what: `${count(most)} policies, ${wait} s later`,
        figure: mebibytes(idle),
        target: atMost(LIMIT_MIB, idle / 1_048_576, " MiB"),
      },
    ],
    figures: { policies: most, ready: first, afterIdle: idle, idleSeconds: wait },
  };
}
