// Two servers compared round by round: medians of ratios, and whether the rounds were quiet enough to judge a target.
import { count, range, ratio, time } from "../report/number.ts";
import type { Row, Target } from "../report/result.ts";
import { type Spread, spreadOf } from "../report/statistics.ts";
import type { Case, Sample } from "./rounds.ts";

/** Below this share the server did not have its core: the load could not keep up, or other work ran here. */
const BUSY = 0.85;
/** This many quiet rounds are enough to drop the others. */
const ENOUGH = 3;

export type Measure = "throughput" | "p50" | "p99" | "processor";
export const MEASURES: Readonly<Record<Measure, string>> = {
  throughput: "throughput",
  p50: "p50",
  p99: "p99",
  processor: "processor time",
};

export interface Comparison {
  readonly ratio: Spread;
  readonly one: number;
  readonly other: number;
  readonly rounds: { readonly used: number; readonly calm: number };
}

/** One server relative to another, round by round. Undefined if it could not be measured. */
export function compare(
  samples: readonly Sample[],
  { pod, connections }: Case,
  measure: Measure,
  one: string,
  other: string,
): Comparison | undefined {
  const all: { values: readonly [number, number]; calm: boolean }[] = [];
  for (const sample of samples) {
    if (sample.pod !== pod || sample.connections !== connections || sample.server !== one) continue;
    const against = samples.find(
      (it) =>
        it.round === sample.round && it.pod === pod && it.connections === connections && it.server === other,
    );
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
export function judged(target: Target | undefined, { rounds }: Comparison): Target | undefined {
  return target === undefined || rounds.calm >= ENOUGH ? target : { ...target, met: undefined };
}

export function rowOf(
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
