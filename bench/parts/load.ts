// usher against the least that any webhook must do: ratios from rounds in which both ran.
import { SIZES } from "../fixtures/policies.ts";
import type { Pod } from "../fixtures/reviews.ts";
import { compare, judged, MEASURES, type Measure, rowOf } from "../load/compare.ts";
import { loadGenerator } from "../load/generator.ts";
import { type Case, CONNECTIONS, type Lengths, type LoadedServer, runRounds } from "../load/rounds.ts";
import { count } from "../report/number.ts";
import { atMost, type Result, type Row, type Target } from "../report/result.ts";
import { pinned } from "../servers/cores.ts";
import type { Servers } from "../servers/servers.ts";

// In a traced run V8 kept compiling the path, and again after wrong guesses, for some 25,000 requests.
const FULL: Lengths = { rounds: 9, seconds: 4, warmSeconds: 10 };
const QUICK: Lengths = { rounds: 3, seconds: 1, warmSeconds: 2 };

/** For the pod that one of 1,000 policies selects. `review-cost` has the targets of CPU time. */
const PROMISED = { policies: 1_000, pod: "wanted", p99: 1.5 } as const;
const PODS: readonly Pod[] = ["wanted", "unwanted", "wanted by ten"];
/** The allowed cost of 10,000 policies relative to 10. */
const GROWTH = 1.1;

export async function load(servers: Servers): Promise<Result> {
  const generator = await loadGenerator();
  const lengths = servers.quick ? QUICK : FULL;
  const loaded: LoadedServer[] = [{ server: await servers.bare(), policies: undefined }];
  for (const policies of SIZES) loaded.push({ server: await servers.usher(policies), policies });
  const samples = await runRounds(servers, generator, loaded, PODS.map(caseOf), lengths);
  const rows: Row[] = [];
  const ratios: object[] = [];
  for (const pod of PODS) {
    for (const policies of SIZES) {
      for (const measure of Object.keys(MEASURES) as Measure[]) {
        const found = compare(samples, caseOf(pod), measure, `usher-${policies}`, "bare");
        if (found === undefined) continue;
        const target = judged(targetOf(policies, pod, measure, found.ratio.median), found);
        const what = `${count(policies)} policies, ${pod}: ${MEASURES[measure]}`;
        rows.push(rowOf(what, measure, found, ["usher", "bare"], target));
        ratios.push({ policies, pod, measure, ...found });
      }
    }
  }
  for (const pod of PODS) {
    const [few, many] = [Math.min(...SIZES), Math.max(...SIZES)];
    const cost = compare(samples, caseOf(pod), "processor", `usher-${many}`, `usher-${few}`);
    if (cost === undefined) continue;
    const what = `${count(many)} policies for ${count(few)}, ${pod}: processor time`;
    const target = judged(atMost(GROWTH, cost.ratio.median), cost);
    rows.push(rowOf(what, "processor", cost, [count(many), count(few)], target));
    ratios.push({ policies: many, over: few, pod, measure: "processor", ...cost });
  }
  const apart = pinned ? "server and load on a core each" : "server and load share the cores";
  return {
    title: `Load over TLS, usher for bare node:https: ${CONNECTIONS} connections, ${lengths.rounds} rounds of ${lengths.seconds} s, ${generator.name}, ${apart}`,
    rows,
    figures: {
      generator: generator.name,
      note: generator.note,
      connections: CONNECTIONS,
      pinned,
      ...lengths,
      ratios,
      samples,
    },
  };
}

const caseOf = (pod: Pod): Case => ({ pod, connections: CONNECTIONS });

function targetOf(policies: number, pod: Pod, measure: Measure, value: number): Target | undefined {
  if (policies !== PROMISED.policies || pod !== PROMISED.pod) return undefined;
  return measure === "p99" ? atMost(PROMISED.p99, value) : undefined;
}
