// For how long one changed policy of many delays every request.
import { setTimeout as sleep } from "node:timers/promises";
import { assemblyWith, policyChange } from "../fixtures/assembly.ts";
import { changePolicy, policy, SIZES } from "../fixtures/policies.ts";
import { count, range, time } from "../report/number.ts";
import { atMost, type Result } from "../report/result.ts";
import { type Spread, spreadOf } from "../report/statistics.ts";
import { scrape, seriesOf } from "../servers/scrape.ts";
import type { Served, Servers } from "../servers/servers.ts";

const LIMIT_MS = 10;
/** Until a changed file has surely been noticed, read and applied. */
const NOTICED_MS = 1_500;
const LOOP_DELAY = 'usher_event_loop_delay_seconds{quantile="1"}';

export async function change(servers: Servers): Promise<Result> {
  const policies = Math.max(...SIZES);
  const applied = inProcess(policies, servers.quick ? 50 : 300);
  const usher = await servers.usher(policies);
  const edits = servers.quick ? 3 : 15;
  servers.say(`changing one policy of ${policies}, ${edits} times …`);
  const idle = await whole(servers, usher, policies, edits, false);
  const changed = await whole(servers, usher, policies, edits, true);
  return {
    title: `One changed policy of ${count(policies)}: the main loop is blocked for`,
    rows: [
      {
        what: "taking the change in (Assembly.apply)",
        figure: time(applied.median),
        spread: range(applied, time),
        target: atMost(LIMIT_MS, applied.median / 1e3, " ms"),
      },
      {
        what: "a changed file, noticed, read and applied",
        figure: time(changed.median),
        spread: range(changed, time),
        detail: `nothing changed: ${time(idle.median)}, ${range(idle, time)}`,
        target: atMost(LIMIT_MS, changed.median / 1e3, " ms"),
      },
    ],
    figures: { policies, appliedMicroseconds: applied, loopMicroseconds: { idle, changed } },
  };
}

/** µs. */
function inProcess(policies: number, times: number): Spread {
  const assembly = assemblyWith(policies);
  const took: number[] = [];
  for (let i = 0; i < times; i++) {
    const changed = policyChange(policy(policies - 1, `pool-${i}`));
    const started = performance.now();
    const real = assembly.apply([changed]);
    took.push((performance.now() - started) * 1e3);
    if (real.length !== 1) throw new Error("the change was not taken for one");
  }
  return spreadOf(took);
}

/**
 * The worst delay of usher's loop around one edit of a file, in µs. Its timer samples every 20 ms, so a shorter block
 * is not always seen: the spread is more informative than the median. The same without an edit shows the machine's own
 * part.
 */
async function whole(
  servers: Servers,
  usher: Served,
  policies: number,
  times: number,
  edit: boolean,
): Promise<Spread> {
  const worst: number[] = [];
  for (let i = 0; i < times; i++) {
    await scrape(usher);
    if (edit) changePolicy(servers.source(policies), policies, `pool-${i}`);
    await sleep(NOTICED_MS);
    worst.push(seriesOf(await scrape(usher), LOOP_DELAY) * 1e6);
  }
  if (edit) changePolicy(servers.source(policies), policies, "etcd");
  return spreadOf(worst);
}
