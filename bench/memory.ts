// What usher holds once it has read everything and nobody asks it anything.
import { setTimeout as sleep } from "node:timers/promises";
import { scrape, seriesOf } from "./metrics.ts";
import { count, mebibytes } from "./number.ts";
import { SIZES } from "./policies.ts";
import { atMost, type Result } from "./result.ts";
import type { Stage } from "./stage.ts";

const LIMIT_MIB = 150;
/** By then what only the reading needed must have been given back. */
const SETTLED_SECONDS = { full: 60, quick: 5 };

export async function memory(stage: Stage): Promise<Result> {
  const most = Math.max(...SIZES);
  const usher = await stage.usher(most);
  const resident = async () => seriesOf(await scrape(usher), "process_resident_memory_bytes");
  const first = await resident();
  const wait = stage.quick ? SETTLED_SECONDS.quick : SETTLED_SECONDS.full;
  stage.say(`waiting ${wait} s for the memory of usher with ${most} policies to settle …`);
  await sleep(wait * 1_000);
  const settled = await resident();
  return {
    title: "Resident memory",
    rows: [
      { what: `${count(most)} policies, when ready`, figure: mebibytes(first) },
      {
        what: `${count(most)} policies, ${wait} s later`,
        figure: mebibytes(settled),
        target: atMost(LIMIT_MIB, settled / 1_048_576, " MiB"),
      },
    ],
    figures: { policies: most, ready: first, settled, settledAfterSeconds: wait },
  };
}
