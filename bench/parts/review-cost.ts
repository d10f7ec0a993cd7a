// The CPU time of one review, for typical policies: usher relative to the minimum of any webhook.
import type { Pod } from "../fixtures/reviews.ts";
import { compare, judged, MEASURES, type Measure, rowOf } from "../load/compare.ts";
import { loadGenerator } from "../load/generator.ts";
import { type Case, CONNECTIONS, type Lengths, runRounds } from "../load/rounds.ts";
import { atMost, type Result, type Row } from "../report/result.ts";
import { pinned } from "../servers/cores.ts";
import type { Servers } from "../servers/servers.ts";

const FULL: Lengths = { rounds: 9, seconds: 3, warmSeconds: 8 };
const QUICK: Lengths = { rounds: 3, seconds: 1, warmSeconds: 3 };
const POLICIES = 10;

/** The allowed CPU time of a review, relative to the bare server's. */
const PROMISED = new Map<Pod, number>([
  ["wanted", 1.4],
  ["affinity and toleration", 1.6],
]);
const P99 = 1.5;
const WHAT = new Map<Pod, string>([
  ["wanted", "nodeSelector"],
  ["affinity and toleration", "affinity and toleration"],
]);

const SHOWN: readonly Measure[] = ["processor", "p99"];

export async function reviewCost(servers: Servers): Promise<Result> {
  const generator = await loadGenerator();
  const lengths = servers.quick ? QUICK : FULL;
  const usher = await servers.usher(POLICIES);
  const loaded = [
    { server: await servers.bare(), policies: undefined },
    { server: usher, policies: POLICIES },
  ];
  const cases: Case[] = [...PROMISED.keys()].flatMap((pod) =>
    [CONNECTIONS, 2 * CONNECTIONS].map((connections) => ({ pod, connections })),
  );
  const samples = await runRounds(servers, generator, loaded, cases, lengths);
  const rows: Row[] = [];
  const ratios: object[] = [];
  for (const one of cases) {
    for (const measure of SHOWN) {
      const found = compare(samples, one, measure, usher.name, "bare");
      if (found === undefined) continue;
      const limit = measure === "p99" ? P99 : (PROMISED.get(one.pod) ?? Number.NaN);
      const what = `${WHAT.get(one.pod)}, ${one.connections} connections: ${MEASURES[measure]}`;
      const target = judged(atMost(limit, found.ratio.median), found);
      rows.push(rowOf(what, measure, found, ["usher", "bare"], target));
      ratios.push({ ...one, measure, ...found });
    }
  }
  return {
    title: `A review, usher for bare node:https: ${POLICIES} policies, pod of 6.4 KB, ${lengths.rounds} rounds of ${lengths.seconds} s, ${generator.name}`,
    rows,
    figures: { generator: generator.name, note: generator.note, pinned, ...lengths, ratios, samples },
  };
}
