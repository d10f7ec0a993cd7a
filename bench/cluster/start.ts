// How long usher takes to read a large cluster, its memory afterwards, and whether it could have answered in the
// meantime: as in a pod, and by a kubeconfig, as a user starts it.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { count, mebibytes, range, time } from "../report/number.ts";
import { atMost, type Result, type Row, type Target } from "../report/result.ts";
import { spreadOf } from "../report/statistics.ts";
import { scrape, seriesOf } from "../servers/scrape.ts";
import { type ClusterServers, PLACES, type Place } from "./cluster-servers.ts";
import { stallIn, stallWatch } from "./event-loop-stall.ts";
import { LARGE_CLUSTER } from "./large-cluster.ts";

const PROMISED = { seconds: 3, mebibytes: 150, stallMs: 20 };
const FULL = { times: 9, idleMs: 10_000 };
const QUICK = { times: 3, idleMs: 3_000 };

interface Sample {
  readonly place: Place;
  readonly seconds: number;
  /** Resident memory in bytes, when ready and some seconds later. */
  readonly ready: number;
  readonly afterIdle: number;
  /** In µs. */
  readonly stall: number;
  readonly busy: number;
}

export async function start(servers: ClusterServers): Promise<Result> {
  await servers.large();
  const { times, idleMs } = servers.quick ? QUICK : FULL;
  servers.say(`starting usher ${times} times in each way, and as often with its loop watched …`);
  const samples: Sample[] = [];
  for (let i = 0; i <= times; i++) {
    for (const place of PLACES) {
      const sample = await measure(servers, place, idleMs);
      // The first start pays for a cold disk, which is not usher's cost.
      if (i > 0) samples.push(sample);
    }
  }
  const { policies, nodes, namespaces } = LARGE_CLUSTER;
  return {
    title: `Start on a live cluster with ${count(policies)} policies, ${count(nodes)} nodes, ${count(namespaces)} namespaces: bin/usher serve, ${times} starts each`,
    rows: PLACES.flatMap((place) => rowsOf(place, samples, idleMs)),
    figures: { ...LARGE_CLUSTER, idleMs, samples },
  };
}

async function measure(servers: ClusterServers, place: Place, idleMs: number): Promise<Sample> {
  const child = await servers.startFollower(place);
  const resident = async () => seriesOf(await scrape(child), "process_resident_memory_bytes");
  const ready = await resident();
  await sleep(idleMs);
  const afterIdle = await resident();
  await child.stop();
  // Apart from the others: checking every millisecond takes time itself.
  const file = join(servers.scratch, "stall");
  await servers.startFollower(place, stallWatch(file)).then((watched) => watched.stop());
  const { wall, processor } = stallIn(file);
  return { place, seconds: child.seconds, ready, afterIdle, stall: wall * 1e3, busy: processor * 1e3 };
}

function rowsOf(place: Place, samples: readonly Sample[], idleMs: number): Row[] {
  const of = (one: Exclude<keyof Sample, "place">) =>
    spreadOf(samples.filter((sample) => sample.place === place).map((sample) => sample[one]));
  const [seconds, ready, afterIdle, stall, busy] = [
    of("seconds"),
    of("ready"),
    of("afterIdle"),
    of("stall"),
    of("busy"),
  ];
  const show = (value: number) => `${value.toFixed(2)} s`;
  return [
    {
      what: `${place}: from the start of the process until ready`,
      figure: show(seconds.median),
      spread: range(seconds, show),
      target: atMost(PROMISED.seconds, seconds.median, " s"),
    },
    {
      what: `${place}: resident memory when ready`,
      figure: mebibytes(ready.median),
      spread: range(ready, mebibytes),
      target: atMost(PROMISED.mebibytes, ready.median / 1_048_576, " MiB"),
    },
    {
      what: `${place}: the same, ${idleMs / 1_000} s later`,
      figure: mebibytes(afterIdle.median),
      spread: range(afterIdle, mebibytes),
      target: atMost(PROMISED.mebibytes, afterIdle.median / 1_048_576, " MiB"),
    },
    {
      what: `${place}: longest stall of the loop while it reads the cluster`,
      figure: time(stall.median),
      spread: range(stall, time),
      detail: `of it processor time ${time(busy.median)}, ${range(busy, time)}`,
      target: stallTarget(stall.median / 1e3, busy.median / 1e3),
    },
  ];
}

/** An idle loop that was not scheduled is the machine's fault, not usher's: neither good nor bad. */
function stallTarget(wall: number, processor: number): Target {
  const target = atMost(PROMISED.stallMs, wall, " ms");
  return target.met === false && processor <= PROMISED.stallMs ? { ...target, met: undefined } : target;
}
