// The measurements of each quarter of a soak, and the comparison of the last one.
import { mebibytes, ratio, time } from "../report/number.ts";
import { atMost, type Result, type Row } from "../report/result.ts";
import { quantile, spreadOf } from "../report/statistics.ts";

/** Growth that is not a leak: variation of the heap, and other work of the machine. */
const MOST = { memory: 1.1, latency: 1.25 } as const;

/** The clients' latencies, in milliseconds from request to response. */
export interface Seen {
  /** Creations of pods that usher changes. */
  readonly reviewed: readonly number[];
  /** Of the same pods without usher: the machine's and the API server's part. */
  readonly unreviewed: readonly number[];
  /** How many requests of each sort. */
  readonly sent: Readonly<Record<string, number>>;
  readonly failed: readonly string[];
}

export interface Quarter extends Seen {
  /** Resident memory by replica, in bytes, one value per sample. */
  readonly memory: Readonly<Record<string, readonly number[]>>;
  /** Reviews that all replicas together answered. */
  readonly reviews: number;
  /** The 99th percentile of usher's own time for a review, in seconds. */
  readonly own: number;
  /** Processor time of all replicas together, in seconds. */
  readonly processor: number;
  readonly load: number;
}

function sorted(values: readonly number[]): readonly number[] {
  return [...values].sort((a, b) => a - b);
}

interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly controlP99: number;
  readonly relative: number;
}

export function figuresOf({ reviewed, unreviewed }: Seen): Figures {
  const values = sorted(reviewed);
  const p99 = quantile(values, 0.99);
  const controlP99 = quantile(sorted(unreviewed), 0.99);
  return { p50: quantile(values, 0.5), p99, controlP99, relative: p99 / controlP99 };
}

const milliseconds = (value: number): string => time(value * 1_000);

function rowOf(quarter: Quarter, index: number, seconds: number): Row[] {
  const { p50, p99, controlP99, relative } = figuresOf(quarter);
  const name = `quarter ${index + 1}`;
  const sent = Object.entries(quarter.sent).map(([what, count]) => `${count} ${what}`);
  return [
    ...Object.entries(quarter.memory).map(([pod, values]) => ({
      what: `${name}: memory of ${pod}`,
      figure: mebibytes(spreadOf(values).median),
      spread: `${mebibytes(spreadOf(values).least)} to ${mebibytes(spreadOf(values).most)}`,
    })),
    {
      what: `${name}: a pod's creation, p99`,
      figure: milliseconds(p99),
      spread: `p50 ${milliseconds(p50)}`,
      detail: `without usher ${milliseconds(controlP99)}, so ${ratio(relative)} of it`,
    },
    { what: `${name}: usher's own time for a review, p99`, figure: milliseconds(quarter.own * 1_000) },
    {
      what: `${name}: reviews a second`,
      figure: ratio(quarter.reviews / seconds),
      spread: `${ratio((quarter.processor / seconds) * 100)} % of a core`,
      detail: `${sent.join(", ")}; ${quarter.failed.length} failed; load ${ratio(quarter.load)}`,
    },
  ];
}

/** The first quarter warms up: the last is compared with the second. */
export function resultOf(quarters: readonly Quarter[], seconds: number): Result {
  const [, second, , last] = quarters;
  if (second === undefined || last === undefined) throw new Error("a soak has four quarters");
  const memory = (quarter: Quarter, pod: string) => spreadOf(quarter.memory[pod] ?? []).median;
  const [before, after] = [figuresOf(second), figuresOf(last)];
  const failed = quarters.flatMap((quarter) => quarter.failed);
  const latency = after.relative / before.relative;
  return {
    title: `The last quarter for the second, ${ratio(seconds / 60)} minutes each`,
    rows: [
      ...quarters.flatMap((quarter, index) => rowOf(quarter, index, seconds)),
      ...Object.keys(last.memory).map((pod) => {
        const grown = memory(last, pod) / memory(second, pod);
        return { what: `memory of ${pod}`, figure: ratio(grown), target: atMost(MOST.memory, grown) };
      }),
      {
        what: "p99, each for the same without usher",
        figure: ratio(latency),
        detail: `as measured ${ratio(after.p99 / before.p99)}, without usher ${ratio(after.controlP99 / before.controlP99)}, usher's own ${ratio(last.own / second.own)}`,
        target: atMost(MOST.latency, latency),
      },
      { what: "requests that failed", figure: String(failed.length), target: atMost(0, failed.length) },
    ],
    figures: { seconds, quarters },
  };
}
