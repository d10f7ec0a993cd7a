// How long a user waits: from the start of the process until usher reports that it is ready.

import { SIZES } from "../fixtures/policies.ts";
import { count, range } from "../report/number.ts";
import { atMost, type Result } from "../report/result.ts";
import { spreadOf } from "../report/statistics.ts";
import { EXAMPLE_SOURCE, type Servers, startUsher } from "../servers/servers.ts";

const READY_SECONDS = 1;
const LARGE_SECONDS = 3;

export async function ready(servers: Servers): Promise<Result> {
  const seconds: number[] = [];
  // The first start pays for a cold disk, which is not usher's cost.
  await startUsher(EXAMPLE_SOURCE).then((child) => child.stop());
  for (let i = 0; i < (servers.quick ? 3 : 9); i++) {
    const child = await startUsher(EXAMPLE_SOURCE);
    seconds.push(child.seconds);
    await child.stop();
  }
  const example = spreadOf(seconds);
  const most = Math.max(...SIZES);
  const large = await servers.usher(most);
  const show = (value: number) => `${value.toFixed(2)} s`;
  return {
    title: "Time to ready",
    rows: [
      {
        what: "examples/cluster",
        figure: show(example.median),
        spread: range(example, show),
        target: atMost(READY_SECONDS, example.median, " s"),
      },
      {
        what: `${count(most)} policies in YAML`,
        figure: show(large.seconds),
        target: atMost(LARGE_SECONDS, large.seconds, " s"),
      },
    ],
    figures: { example: { ...example, seconds }, [most]: large.seconds },
  };
}
