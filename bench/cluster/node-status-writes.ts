// The effect of 5,000 nodes' heartbeats on usher: none on the view, little on the latency of a review. Two processes of
// usher's webhook are compared, one with nodes in its view and one without, each with the writes and without; the
// control plane and the writers have their own core, so that the difference is usher's handling of the events. Rounds
// are short and many: a handful of reviews determine the 99th percentile of a run, and one pause of the machine changes
// it.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "../../test/cluster/cluster.ts";
import { reviews } from "../fixtures/reviews.ts";
import { type Figures, loadGenerator } from "../load/generator.ts";
import { CONNECTIONS, PATH } from "../load/rounds.ts";
import { count, range, ratio, time } from "../report/number.ts";
import { atMost, type Result, type Target } from "../report/result.ts";
import { type Spread, spreadOf } from "../report/statistics.ts";
import { checkResponse } from "../servers/check-response.ts";
import { keepLoadCoreAwake, pinServer } from "../servers/cores.ts";
import { type Served, servedAs } from "../servers/servers.ts";
import type { ClusterServers } from "./cluster-servers.ts";
import { keepApart } from "./cores.ts";
import type { Beating } from "./heartbeat-worker.ts";
import { LARGE_CLUSTER } from "./large-cluster.ts";
import { usherReadsNodes } from "./node-view.ts";
import type { Followed, Following } from "./replica-worker.ts";
import { startWorker, type Worker } from "./worker-process.ts";

const WRITES = 300;
const PROMISED = { p99: 1.5, changes: 0 };
/** Far below usher's capacity: a queue would hide the effect of the writes. */
const REVIEWS = 200;
const FULL = { rounds: 15, seconds: 4, warmSeconds: 15 };
const QUICK = { rounds: 5, seconds: 4, warmSeconds: 6 };
/** The writes begin before the reviews, and end after them. */
const MARGIN_MS = 500;

/** The share of the requested writes that must have been done. */
const ENOUGH = 0.95;

type Name = "watching" | "not watching";

interface Sample extends Figures {
  readonly round: number;
  readonly server: Name;
  /** Status writes a second meanwhile. */
  readonly written: number;
}

type Follower = Worker<Following, Followed>;

export async function writes(servers: ClusterServers): Promise<Result> {
  const generator = await loadGenerator();
  const cluster = await servers.large();
  using apart = keepApart(cluster);
  await using watching = startFollower(cluster);
  await using other = startFollower(cluster);
  await using writers = startWorker<Beating, number>(script("heartbeat-worker.ts"), cluster);
  pinServer(writers.pid);
  const replicas = [
    await served(servers, watching, "watching"),
    await served(servers, other, "not watching"),
  ];
  const { rounds, seconds, warmSeconds } = servers.quick ? QUICK : FULL;
  const bodies = reviews("wanted", LARGE_CLUSTER.policies);
  const attack = (server: Served, length: number, rate?: number) =>
    generator.attack({
      url: `${server.ready.webhook}${PATH}`,
      ca: server.ca,
      bodies,
      seconds: length,
      connections: CONNECTIONS,
      scratch: servers.scratch,
      ...(rate === undefined ? {} : { rate }),
    });
  servers.say("warming up …");
  for (const server of replicas) {
    await checkResponse(server, PATH, bodies[0] ?? "", true);
    await attack(server, warmSeconds);
  }
  await writers.ask({ perSecond: WRITES, seconds });
  // Otherwise the events, which keep the core awake, would make reviews look faster than without.
  const rest = keepLoadCoreAwake();
  const samples: Sample[] = [];
  const measure = async (server: Served, round: number, writing: boolean): Promise<void> => {
    const beating = writing
      ? writers.ask({ perSecond: WRITES, seconds: seconds + (2 * MARGIN_MS) / 1_000 })
      : Promise.resolve(0);
    await sleep(MARGIN_MS);
    const [figures, written] = await Promise.all([attack(server, seconds, REVIEWS), beating]);
    samples.push({ ...figures, round, server: server.name as Name, written });
  };
  for (let round = 1; round <= rounds; round++) {
    servers.say(`round ${round} of ${rounds}, ${2 * replicas.length} runs of ${seconds} s …`);
    const order = round % 2 === 1 ? replicas : replicas.toReversed();
    for (const writing of round % 2 === 1 ? [false, true] : [true, false])
      for (const server of order) await measure(server, round, writing);
  }
  rest();
  const { changes, nodes } = await watching.ask({ do: "count changes" });
  return resultOf(samples, { rounds, seconds, changes, nodes, cores: apart.says, by: generator.name });
}

function script(name: string): string {
  return join(import.meta.dirname, name);
}

function startFollower(cluster: Cluster): Follower {
  return startWorker<Following, Followed>(script("replica-worker.ts"), cluster);
}

async function served(servers: ClusterServers, follower: Follower, name: Name): Promise<Served> {
  const { ready } = await follower.ask({ do: "serve", watchNodes: name === "watching" });
  const stop = () => Promise.resolve();
  return servedAs(servers.scratch, name, { pid: follower.pid, ready, seconds: 0, stop });
}

interface Facts {
  readonly rounds: number;
  readonly seconds: number;
  readonly changes: number;
  readonly nodes: number;
  readonly cores: string;
  readonly by: string;
}

function resultOf(samples: readonly Sample[], facts: Facts): Result {
  const { rounds, seconds, changes, nodes, cores, by } = facts;
  const watching = compare(samples, ["watching", true], ["watching", false]);
  const machine = compare(samples, ["not watching", true], ["not watching", false]);
  const own = compare(samples, ["watching", true], ["not watching", true]);
  const row = (what: string, found: Comparison, [one, other]: readonly [string, string]) => ({
    what,
    figure: ratio(found.ratio),
    spread: range(found.rounds, ratio),
    detail: `${one} ${time(found.one)}, ${other} ${time(found.other)}`,
  });
  const written = spreadOf(samples.filter((one) => one.written > 0).map((one) => one.written));
  const whose = usherReadsNodes ? "a module of usher reads them" : "a module of the bench reads them";
  return {
    title: `${count(nodes)} nodes with ${count(written.median)} status writes a second (${count(WRITES)} asked for), ${REVIEWS} reviews a second, ${rounds} rounds of ${seconds} s, ${by}; ${whose}; ${cores}, but for the writers`,
    rows: [
      {
        what: "changes of nodes in the view that has them",
        figure: count(changes),
        target: atMost(PROMISED.changes, changes),
      },
      {
        ...row("p99 of reviews, nodes in the view: with the writes for without", watching, [
          "with",
          "without",
        ]),
        target: p99Target(watching, written.median),
      },
      row("the same, no nodes in the view: what the machine makes of it", machine, ["with", "without"]),
      row("p99 under the writes: nodes in the view for none", own, ["nodes", "none"]),
    ],
    figures: { ...LARGE_CLUSTER, usherReadsNodes, changes, written, watching, machine, own, samples },
  };
}

interface Comparison {
  readonly ratio: number;
  /**
   * Round by round. One pause of the machine determines a round's value, so these show how quiet it was and not what
   * usher does.
   */
  readonly rounds: Spread;
  readonly one: number;
  readonly other: number;
}

type Arm = readonly [server: Name, writing: boolean];

/** The p99 of one relative to another: the median of all rounds, because a pause makes that of a single round ten times as long. */
function compare(samples: readonly Sample[], one: Arm, other: Arm): Comparison {
  const p99 = ([server, writing]: Arm) =>
    samples
      .filter((sample) => sample.server === server && sample.written > 0 === writing)
      .map((sample) => sample.p99);
  const [ones, others] = [p99(one), p99(other)];
  const middle = { one: spreadOf(ones).median, other: spreadOf(others).median };
  return {
    ...middle,
    ratio: middle.one / middle.other,
    rounds: spreadOf(ones.map((value, i) => value / (others[i] ?? Number.NaN))),
  };
}

/** With fewer writes than requested the machine was too busy for the measurement. */
function p99Target({ ratio: found }: Comparison, written: number): Target {
  const target = atMost(PROMISED.p99, found);
  return written < ENOUGH * WRITES ? { ...target, met: undefined } : target;
}
