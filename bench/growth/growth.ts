// The cost that one tenant can cause for a review: each field and each list of objects, provenance annotations and
// policies grows to the API server's limit, for every hook of every module, with 5,000 nodes and 1,000 policies of each
// kind in the view.
import { setImmediate } from "node:timers/promises";
import { GROWTH_CASES } from "../../test/growth/all-cases.ts";
import { creation, type GrowthCase, MULTIPLES } from "../../test/growth/case.ts";
import { ELSEWHERE_CASES } from "../../test/growth/tenant-policies.ts";
import { ratio, time } from "../report/number.ts";
import { atMost, type Result, type Row } from "../report/result.ts";
import { spreadOf } from "../report/statistics.ts";
import type { Servers } from "../servers/servers.ts";
import { bend } from "./fit.ts";
import { type Reviewer, reviewer, reviewTime } from "./measure.ts";

/** Beyond parsing the body, in milliseconds. */
const MOST_MILLISECONDS = 50;
/** The review of a pod elsewhere, for the same without the tenant's policies. */
const MOST_ELSEWHERE = 1.1;
/** Quadratic growth gives 1.8. */
const MOST_BENT = 1.4;
/** Shorter times are measured too coarsely for a line. */
const SHORTEST_MILLISECONDS = 10;

/** Reviews that are timed together. */
const BATCH = 2_000;

/** A line of progress after this many cases. */
const SAID_EVERY = 50;

/** The number of the slowest that are listed. */
const LISTED = 10;

interface Grown {
  readonly name: string;
  readonly milliseconds: readonly number[];
  readonly bend: number;
}

export async function growth(servers: Servers): Promise<Result> {
  servers.say("growing objects, notes and policies in this process …");
  const repeats = servers.quick ? 1 : 5;
  const cases = GROWTH_CASES.filter((_, i) => !servers.quick || i % 10 === 0);
  const grown: Grown[] = [];
  for (const one of cases) {
    grown.push(await grow(one, repeats));
    if (grown.length % SAID_EVERY === 0) servers.say(`${grown.length} of ${cases.length} cases …`);
    // Otherwise a signal could not end the process.
    await setImmediate();
  }
  grown.sort((a, b) => longest(b) - longest(a));
  const [slowest] = grown;
  const long = grown.filter((one) => longest(one) >= SHORTEST_MILLISECONDS);
  const [bent] = long.toSorted((a, b) => b.bend - a.bend);
  const rows: Row[] = [
    {
      what: `the slowest of ${grown.length}`,
      figure: time(1_000 * (slowest === undefined ? Number.NaN : longest(slowest))),
      detail: slowest?.name ?? "",
      target: atMost(MOST_MILLISECONDS, slowest === undefined ? Number.NaN : longest(slowest), " ms"),
    },
    {
      what: `the most bent of ${long.length} above ${SHORTEST_MILLISECONDS} ms`,
      figure: ratio(bent?.bend ?? 1),
      detail: bent?.name ?? "",
      target: atMost(MOST_BENT, bent?.bend ?? 1),
    },
    ...grown.slice(1, LISTED).map((one) => ({ what: one.name, figure: time(1_000 * longest(one)) })),
  ];
  const elsewhere: { readonly name: string; readonly ratio: number }[] = [];
  for (const one of ELSEWHERE_CASES)
    elsewhere.push({ name: one.name, ratio: await timesUsual(one, servers.quick) });
  for (const one of elsewhere)
    rows.push({
      what: one.name,
      figure: ratio(one.ratio),
      detail: "for the same without them",
      target: atMost(MOST_ELSEWHERE, one.ratio),
    });
  const title = "CPU time of a review beyond parsing, at the size limit of an API server";
  return { title, rows, figures: { grown, elsewhere } };
}

async function grow({ name, n, review }: GrowthCase, repeats: number): Promise<Grown> {
  const milliseconds: number[] = [];
  for (const multiple of MULTIPLES) milliseconds.push(await reviewTime(review(n * multiple), repeats));
  const read = milliseconds.filter((one) => one > 0);
  return { name, milliseconds, bend: read.length < 3 ? 1 : bend(MULTIPLES.slice(0, read.length), read) };
}

/** Not always at the largest size, which the server may refuse to decode. */
function longest({ milliseconds }: Grown): number {
  return Math.max(...milliseconds);
}

/** Both in turn, so that disturbances of the machine affect both. */
async function timesUsual({ n, review }: GrowthCase, quick: boolean): Promise<number> {
  const grown = review(8 * n);
  const usual = creation([], grown.request.object ?? {});
  const [loaded, free] = [reviewer(grown), reviewer(usual)];
  const batch = (review: Reviewer) => review(BATCH);
  for (let i = 0; i < 10; i++) [await batch(loaded), await batch(free)];
  const ratios: number[] = [];
  for (let i = 0; i < (quick ? 10 : 50); i++) ratios.push((await batch(loaded)) / (await batch(free)));
  return spreadOf(ratios).median;
}
