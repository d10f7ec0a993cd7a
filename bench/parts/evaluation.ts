// The cost of a request in usher itself, without TLS and HTTP: the part that policies can slow down.

import { reviewResponse } from "../../src/admission/http/http-response.ts";
import { decodeReview, Undecodable } from "../../src/admission/review/decode.ts";
import { ReviewHandler } from "../../src/admission/review/handle.ts";
import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { evaluate, type Host } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import { SILENT } from "../../src/core/log.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import { assemblyWith, staticSource } from "../fixtures/assembly.ts";
import { SIZES } from "../fixtures/policies.ts";
import { isPatched, PODS, type Pod, reviews } from "../fixtures/reviews.ts";
import { count, range, time } from "../report/number.ts";
import type { Result, Row } from "../report/result.ts";
import { type Spread, spreadOf } from "../report/statistics.ts";
import type { Servers } from "../servers/servers.ts";

/** Requests in one timing: enough that the clock does not matter, few enough that parsed ones stay in the cache. */
const BATCH = 64;
/** The compiler is warm by then. */
const WARM_BATCHES = 150;

const NO_HOST: Host = {
  fetch: () => Promise.reject(new Error("the bench needs no facts")),
  commit: () => Promise.reject(new Error("the bench commits nothing")),
  expired: () => false,
};

interface Piece {
  readonly what: string;
  readonly pod: Pod;
  readonly policies: number;
  readonly batch: () => number;
}

export function evaluation(servers: Servers): Promise<Result> {
  servers.say("measuring evaluation in this process …");
  const list: Piece[] = [];
  for (const policies of SIZES) {
    const assembly = assemblyWith(policies);
    for (const pod of PODS) {
      const bodies = reviews(pod, policies).map((body) => Buffer.from(body));
      list.push(evaluatePiece(assembly, pod, policies, bodies), handlePiece(assembly, pod, policies, bodies));
    }
  }
  const measured = interleaved(list, servers.quick ? 60 : 300);
  const row = (piece: Piece): Row => {
    const spread = measured.get(piece) ?? spreadOf([]);
    return {
      what: `${piece.what}, ${count(piece.policies)} policies, ${piece.pod}`,
      figure: time(spread.median),
      spread: range(spread, time),
    };
  };
  const figures = list.map((piece) => ({
    what: piece.what,
    pod: piece.pod,
    policies: piece.policies,
    microseconds: measured.get(piece),
  }));
  return Promise.resolve({ title: "In process, a request", rows: list.map(row), figures });
}

/** From a decoded request to the text of the response. Decoding is not timed: an evaluation edits its input. */
function evaluatePiece(assembly: Assembly, pod: Pod, policies: number, bodies: readonly Buffer[]): Piece {
  const hooks = assembly.hooks.filter(({ phase }) => phase === "mutate");
  const batch = () => {
    const requests = Array.from({ length: BATCH }, (_, i) => decoded(bodies[i % bodies.length]));
    const started = performance.now();
    for (const request of requests) {
      const result = evaluate({ assembly, phase: "mutate", hooks, request, now: 0 }, NO_HOST);
      if (result instanceof Promise) throw new Error("the bench needs no facts");
      checkReply(reviewResponse(responseOf(result), "mutate", result).body, pod);
    }
    return performance.now() - started;
  };
  return { what: "evaluate and answer", pod, policies, batch };
}

/** From the bytes of a body to the text of the response: usher's complete work except HTTP. */
function handlePiece(assembly: Assembly, pod: Pod, policies: number, bodies: readonly Buffer[]): Piece {
  const { handle } = new ReviewHandler({ source: staticSource(assembly), log: SILENT });
  const empty = Buffer.alloc(0);
  const batch = () => {
    const started = performance.now();
    for (let i = 0; i < BATCH; i++) {
      const reply = handle(bodies[i % bodies.length] ?? empty, "/mutate?timeout=10s");
      if (reply instanceof Promise) throw new Error("the bench needs no facts");
      checkReply(reply.body, pod);
    }
    return performance.now() - started;
  };
  return { what: "parse, evaluate and answer", pod, policies, batch };
}

function decoded(body: Buffer | undefined): AdmissionRequest {
  const request = decodeReview(body ?? Buffer.alloc(0));
  if (request instanceof Undecodable) throw new Error(request.message);
  return request;
}

/** A bench of wrong answers measures nothing. */
function checkReply(body: string, pod: Pod): void {
  if (body.includes('"patch":') !== isPatched(pod))
    throw new Error(`not the answer for a pod that is ${pod}: ${body}`);
}

/** All evaluations in turn, so that temporary disturbances of the machine affect all of them. */
function interleaved(list: readonly Piece[], rounds: number): Map<Piece, Spread> {
  const samples = new Map<Piece, number[]>(list.map((piece) => [piece, []]));
  for (let round = 0; round < WARM_BATCHES + rounds; round++) {
    for (const piece of list) {
      const microseconds = (piece.batch() * 1e3) / BATCH;
      if (round >= WARM_BATCHES) samples.get(piece)?.push(microseconds);
    }
  }
  return new Map([...samples].map(([piece, values]) => [piece, spreadOf(values)]));
}
