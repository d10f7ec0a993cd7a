// What the heartbeats of 5,000 nodes do to usher: nothing in the view, little to who waits for a review.
import { startHeartbeats } from "./cluster-heartbeats.ts";
import { openNodeView, usherReadsNodes } from "./cluster-node-view.ts";
import { type ClusterStage, CROWD } from "./cluster-stage.ts";
import { type Figures, loadGenerator } from "./generator.ts";
import { count, range, ratio, time } from "./number.ts";
import { checkAnswer } from "./probe.ts";
import { atMost, type Result, type Row } from "./result.ts";
import { reviews } from "./reviews.ts";
import { CONNECTIONS, PATH } from "./rounds.ts";
import type { Served } from "./stage.ts";
import { spreadOf } from "./statistics.ts";

const WRITES = 300;
const PROMISED = { p99: 1.5, changes: 0 };
/** Far from what usher can do: a queue of its own making would hide what the writes add. */
const REVIEWS = 200;
const FULL = { rounds: 7, seconds: 10, warmSeconds: 15 };
const QUICK = { rounds: 3, seconds: 3, warmSeconds: 5 };

interface Sample extends Figures {
  readonly round: number;
  readonly server: string;
  /** Status writes a second meanwhile. */
  readonly written: number;
}

export async function writes(stage: ClusterStage): Promise<Result> {
  const generator = await loadGenerator();
  const cluster = await stage.crowd();
  const usher = await stage.follower();
  // The yardstick: what the machine itself makes of a busy API server beside it.
  const servers: readonly Served[] = [usher, await stage.bare()];
  await using view = await openNodeView(cluster);
  const { rounds, seconds, warmSeconds } = stage.quick ? QUICK : FULL;
  const bodies = reviews("wanted", CROWD.policies);
  const attack = (server: Served, length: number, rate?: number) =>
    generator.attack({
      url: `${server.ready.webhook}${PATH}`,
      ca: server.ca,
      bodies,
      seconds: length,
      connections: CONNECTIONS,
      scratch: stage.scratch,
      ...(rate === undefined ? {} : { rate }),
    });
  stage.say("warming up …");
  await checkAnswer(usher, PATH, bodies[0] ?? "", true);
  for (const server of servers) await attack(server, warmSeconds);
  const samples: Sample[] = [];
  const measure = async (round: number, writing: boolean): Promise<void> => {
    for (const server of servers) {
      const heartbeats = writing ? startHeartbeats(cluster, CROWD.nodes, WRITES) : undefined;
      const figures = await attack(server, seconds, REVIEWS);
      const written = (await heartbeats?.stop()) ?? 0;
      samples.push({ ...figures, round, server: server.name, written });
    }
  };
  for (let round = 1; round <= rounds; round++) {
    stage.say(`round ${round} of ${rounds}, ${2 * servers.length} runs of ${seconds} s …`);
    for (const writing of round % 2 === 1 ? [false, true] : [true, false]) await measure(round, writing);
  }
  const changes = await view.changes();
  const written = spreadOf(samples.filter((one) => one.written > 0).map((one) => one.written));
  const [ofUsher, ofBare] = servers.map(({ name }) => compare(samples, name));
  if (ofUsher === undefined || ofBare === undefined) throw new Error("nothing was measured");
  const nodes = usherReadsNodes
    ? "usher has nodes in its view"
    : "no module of usher reads nodes yet: they are not in its own view";
  return {
    title: `${count(CROWD.nodes)} nodes with ${count(written.median)} status writes a second (${count(WRITES)} asked for), ${REVIEWS} reviews a second, ${rounds} rounds of ${seconds} s, ${generator.name}; ${nodes}`,
    rows: [
      {
        what: "changes in a view that keeps labels and taints of nodes",
        figure: count(changes),
        detail: `${count(view.nodes)} nodes in it, in the bench's process`,
        target: atMost(PROMISED.changes, changes),
      },
      { ...rowOf("usher", ofUsher), target: atMost(PROMISED.p99, ofUsher.ratio.median) },
      rowOf("bare node:https, for comparison", ofBare),
    ],
    figures: { ...CROWD, usherReadsNodes, changes, written, usher: ofUsher, bare: ofBare, samples },
  };
}

/** Round by round, with the writes over without. */
function compare(samples: readonly Sample[], server: string) {
  const p99 = (writing: boolean) =>
    samples.filter((one) => one.server === server && one.written > 0 === writing).map((one) => one.p99);
  const [busy, calm] = [p99(true), p99(false)];
  return {
    ratio: spreadOf(busy.map((value, i) => value / (calm[i] ?? Number.NaN))),
    busy: spreadOf(busy),
    calm: spreadOf(calm),
  };
}

function rowOf(who: string, found: ReturnType<typeof compare>): Row {
  return {
    what: `p99 of reviews with the writes for without: ${who}`,
    figure: ratio(found.ratio.median),
    spread: range(found.ratio, ratio),
    detail: `with ${time(found.busy.median)}, without ${time(found.calm.median)}`,
  };
}
