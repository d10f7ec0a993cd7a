// The processor time of one review beyond parsing its body.
import { decodeReview, Undecodable } from "../../src/admission/review/decode.ts";
import { createHandle } from "../../src/admission/review/handle.ts";
import { assembleModules } from "../../src/cli/source/source.ts";
import { SILENT } from "../../src/core/log.ts";
import { modules } from "../../src/modules/all.ts";
import { came } from "../../test/builders/policy.ts";
import { type Review, TENANT } from "../../test/growth/case.ts";
import { staticSource } from "../fixtures/assembly.ts";
import { spreadOf } from "../report/statistics.ts";

/** Reviews one body again and again. Both give milliseconds. */
export interface Reviewer {
  readonly parse: (times?: number) => number;
  readonly review: (times?: number) => number;
}

export function reviewer({ policies, request, phase }: Review): Reviewer {
  const assembly = assembleModules(modules);
  assembly.apply([TENANT, ...policies].map(came));
  const handle = createHandle({ source: staticSource(assembly), log: SILENT });
  const body = Buffer.from(
    JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request }),
  );
  const parse = () => decodeReview(body);
  // Bodies above the limits of the server are refused when they are decoded, and cost nothing more.
  const isRefused = decodeReview(body) instanceof Undecodable;
  const review = () => {
    const response = handle(body, `/${phase}?timeout=10s`);
    if (response instanceof Promise) throw new Error("a review of the bench needs no facts");
    if (response.status !== 200 && !isRefused) throw new Error(response.body);
  };
  return {
    parse: (times = 1) =>
      processorTime(() => {
        for (let i = 0; i < times; i++) parse();
      }),
    review: (times = 1) =>
      processorTime(() => {
        for (let i = 0; i < times; i++) review();
      }),
  };
}

/** The clock of a thread counts in ticks of 4 ms: shorter reviews are timed together, or their times make no line. */
const SHORTEST_SAMPLE_MILLISECONDS = 24;

/** Milliseconds of one review beyond parsing its body, the median of some. */
export function reviewTime(one: Review, repeats: number): number {
  const { parse, review } = reviewer(one);
  review();
  const times = Math.ceil(SHORTEST_SAMPLE_MILLISECONDS / Math.max(1, review()));
  const samples = Array.from({ length: repeats }, () => {
    const parsing = parse(times);
    return Math.max(0, review(times) - parsing) / times;
  });
  return spreadOf(samples).median;
}

/** Of this thread alone: others compile and collect at the same time, and the machine may be busy. */
function processorTime(work: () => void): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}
