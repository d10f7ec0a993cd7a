// usher against the least that any webhook must do: ratios from rounds in which both ran.

import { SIZES } from "../fixtures/policies.ts";
import { PODS, type Pod } from "../fixtures/reviews.ts";
import { loadGenerator } from "../load/generator.ts";
import { CONNECTIONS, type Lengths, type LoadedServer, runRounds, type Sample } from "../load/rounds.ts";
import { count, range, ratio, time } from "../report/number.ts";
import { atLeast, atMost, type Result, type Row, type Target } from "../report/result.ts";
import { type Spread, spreadOf } from "../report/statistics.ts";
import { pinned } from "../servers/cores.ts";
import type { Servers } from "../servers/servers.ts";

// In a traced run V8 went on compiling the path, and again after wrong guesses, for some 25,000 requests.
const FULL: Lengths = { rounds: 9, seconds: 4, warmSeconds: 10 };
const QUICK: Lengths = { rounds: 3, seconds: 1, warmSeconds: 2 };

/** The figures that were promised, for the pod that one of 1,000 policies wants. */
const PROMISED = { policies: 1_000, pod: "wanted", throughput: 0.85, p99: 1.5 } as const;
/** What 10,000 policies may cost of what 10 cost. */
const GROWTH = 1.1;

/** Below this the server did not have its core: the load could not keep up, or other work ran here. */
const BUSY = 0.85;
/** So many undisturbed rounds are enough to leave the others out. */
const ENOUGH = 3;

type Measure = "throughput" | "p50" | "p99" | "processor";
const MEASURES: Readonly<Record<Measure, string>> = {
  throughput: "throughput",
  p50: "p50",
  p99: "p99",
  processor: "processor time",
};

export async function load(servers: Servers): Promise<Result> {
  const generator = await loadGenerator();
  const lengths = servers.quick ? QUICK : FULL;
  const loaded: LoadedServer[] = [{ server: await servers.bare(), policies: undefined }];
  for (const policies of SIZES) loaded.push({ server: await servers.usher(policies), policies });
  const samples = await runRounds(servers, generator, loaded, lengths);
  const rows: Row[] = [];
  const ratios: object[] = [];
  for (const pod of PODS) {
    for (const policies of SIZES) {
      for (const measure of Object.keys(MEASURES) as Measure[]) {
        const found = compare(samples, pod, measure, `usher-${policies}`, "bare");
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
    const cost = compare(samples, pod, "processor", `usher-${many}`, `usher-${few}`);
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

interface Comparison {
  readonly ratio: Spread;
  readonly one: number;
  readonly other: number;
  readonly rounds: { readonly used: number; readonly calm: number };
}

/** One server over another, round by round. Undefined where it could not be measured. */
function compare(
  samples: readonly Sample[],
  pod: Pod,
  measure: Measure,
  one: string,
  other: string,
): Comparison | undefined {
  const all: { values: readonly [number, number]; calm: boolean }[] = [];
  for (const sample of samples) {
    if (sample.pod !== pod || sample.server !== one) continue;
    const against = samples.find((it) => it.round === sample.round && it.pod === pod && it.server === other);
    const [value, base] = [sample[measure], against?.[measure]];
    if (value === undefined || base === undefined) continue;
    all.push({ values: [value, base], calm: Math.min(sample.busy ?? 1, against?.busy ?? 1) >= BUSY });
  }
  if (all.length === 0) return undefined;
  const calm = all.filter((pair) => pair.calm);
  const used = (calm.length >= ENOUGH ? calm : all).map((pair) => pair.values);
  return {
    ratio: spreadOf(used.map(([value, base]) => value / base)),
    one: spreadOf(used.map(([value]) => value)).median,
    other: spreadOf(used.map(([, base]) => base)).median,
    rounds: { used: used.length, calm: calm.length },
  };
}

/** Rounds in which other work had the core show neither success nor failure. */
function judged(target: Target | undefined, { rounds }: Comparison): Target | undefined {
  return target === undefined || rounds.calm >= ENOUGH ? target : { ...target, met: undefined };
}

function targetOf(policies: number, pod: Pod, measure: Measure, value: number): Target | undefined {
  if (policies !== PROMISED.policies || pod !== PROMISED.pod) return undefined;
  if (measure === "throughput") return atLeast(PROMISED.throughput, value);
  return measure === "p99" ? atMost(PROMISED.p99, value) : undefined;
}

function rowOf(
  what: string,
  measure: Measure,
  found: Comparison,
  [one, other]: readonly [string, string],
  target: Target | undefined,
): Row {
  const show = measure === "throughput" ? (value: number) => `${count(value)}/s` : time;
  return {
    what,
    figure: ratio(found.ratio.median),
    spread: range(found.ratio, ratio),
    detail: `${one} ${show(found.one)}, ${other} ${show(found.other)}, ${found.rounds.calm} calm rounds`,
    ...(target === undefined ? {} : { target }),
  };
}
