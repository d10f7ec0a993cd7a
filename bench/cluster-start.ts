// How long usher takes to know a large cluster, what it then holds, and whether it could have answered meanwhile.
import { join } from "node:path";
import { type ClusterStage, CROWD } from "./cluster-stage.ts";
import { stallIn, stallWatch } from "./cluster-stall.ts";
import { scrape, seriesOf } from "./metrics.ts";
import { count, mebibytes, range, time } from "./number.ts";
import { atMost, type Result } from "./result.ts";
import { spreadOf } from "./statistics.ts";

const PROMISED = { seconds: 3, mebibytes: 150, stallMs: 20 };
const LOOP_DELAY = 'usher_event_loop_delay_seconds{quantile="1"}';

export async function start(stage: ClusterStage): Promise<Result> {
  await stage.crowd();
  const times = stage.quick ? 3 : 9;
  stage.say(`starting usher ${times} times, and ${times} times with its loop watched …`);
  // The first start pays for a cold disk, which says nothing of usher.
  await stage.startFollower().then((child) => child.stop());
  const seconds: number[] = [];
  const resident: number[] = [];
  const served: number[] = [];
  const stalls: number[] = [];
  for (let i = 0; i < times; i++) {
    const child = await stage.startFollower();
    const page = await scrape(child);
    await child.stop();
    seconds.push(child.seconds);
    resident.push(seriesOf(page, "process_resident_memory_bytes"));
    served.push(seriesOf(page, LOOP_DELAY) * 1e6);
    // Apart from the others: looking every millisecond takes time itself.
    const file = join(stage.scratch, `stall-${i}`);
    await stage.startFollower(stallWatch(file)).then((watched) => watched.stop());
    stalls.push(stallIn(file) * 1e3);
  }
  const [ready, memory, stall, gauge] = [seconds, resident, stalls, served].map(spreadOf);
  if (ready === undefined || memory === undefined || stall === undefined || gauge === undefined)
    throw new Error("nothing was measured");
  const show = (value: number) => `${value.toFixed(2)} s`;
  const { policies, nodes, namespaces } = CROWD;
  return {
    title: `Start on a live cluster with ${count(policies)} policies, ${count(nodes)} nodes, ${count(namespaces)} namespaces: usher serve --kubeconfig from the source, ${times} starts`,
    rows: [
      {
        what: "from the start of the process until ready",
        figure: show(ready.median),
        spread: range(ready, show),
        target: atMost(PROMISED.seconds, ready.median, " s"),
      },
      {
        what: "resident memory when ready",
        figure: mebibytes(memory.median),
        spread: range(memory, mebibytes),
        target: atMost(PROMISED.mebibytes, memory.median / 1_048_576, " MiB"),
      },
      {
        what: "longest stall of the loop while it reads the cluster",
        figure: time(stall.median),
        spread: range(stall, time),
        target: atMost(PROMISED.stallMs, stall.median / 1e3, " ms"),
      },
      {
        what: "usher_event_loop_delay_seconds, largest",
        figure: time(gauge.median),
        spread: range(gauge, time),
        detail: "begins only after the cluster was read",
      },
    ],
    figures: { ...CROWD, seconds, resident, stallMicroseconds: stalls, gaugeMicroseconds: served },
  };
}
