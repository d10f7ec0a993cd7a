// The cost of a pod that ten policies select relative to one that one policy selects, in CPU time of this process.
import { decodeReview, Undecodable } from "../../src/admission/review/decode.ts";
import { ReviewHandler } from "../../src/admission/review/handle.ts";
import { assembleModules } from "../../src/cli/source/source.ts";
import { evaluate, type Host } from "../../src/core/evaluate/evaluate.ts";
import { SILENT } from "../../src/core/log.ts";
import { modules } from "../../src/modules/all.ts";
import { policyChange, staticSource } from "../fixtures/assembly.ts";
import { NAMESPACE, NAMESPACE_OBJECT, tenPolicies } from "../fixtures/policies.ts";
import { reviews } from "../fixtures/reviews.ts";
import { ratio, time } from "../report/number.ts";
import { atMost, type Result } from "../report/result.ts";
import type { Servers } from "../servers/servers.ts";

const BATCH = 64;
const WARM_BATCHES = 150;
/** The target of a whole review: a pod is decoded and answered once, for any number of policies. */
const MOST_TIMES = 2.5;

interface Cost {
  readonly evaluate: number;
  readonly review: number;
}

export function tenPoliciesPart(servers: Servers): Promise<Result> {
  servers.say("measuring a pod that ten policies select …");
  const batches = servers.quick ? 100 : 600;
  const [one, ten] = [costOf(1, batches), costOf(10, batches)];
  const rows = (["evaluate", "review"] as const).map((what) => ({
    what:
      what === "evaluate"
        ? "evaluate: ten policies against one"
        : "decode, evaluate and answer: ten against one",
    figure: ratio(ten[what] / one[what]),
    detail: `${time(one[what])} and ${time(ten[what])}`,
    ...(what === "review" ? { target: atMost(MOST_TIMES, ten[what] / one[what]) } : {}),
  }));
  return Promise.resolve({
    title: "A pod that ten policies select, processor time",
    rows,
    figures: { one, ten },
  });
}

/** Microseconds of processor time a request. */
function costOf(policies: number, batches: number): Cost {
  const assembly = assembleModules(modules);
  assembly.apply([
    { resource: "namespaces", namespace: "", name: NAMESPACE, object: NAMESPACE_OBJECT },
    ...tenPolicies().slice(0, policies).map(policyChange),
  ]);
  const bodies = reviews("wanted by ten", 10).map((body) => Buffer.from(body));
  const source = staticSource(assembly);
  const host: Host = {
    fetch: () => Promise.reject(new Error("the bench needs no facts")),
    commit: () => Promise.reject(new Error("the bench commits nothing")),
    expired: () => false,
  };
  const hooks = assembly.hooks.filter(({ phase }) => phase === "mutate");
  const { handle } = new ReviewHandler({ source, log: SILENT });
  const evaluated = measured(batches, () => {
    const requests = Array.from({ length: BATCH }, (_, i) => {
      const request = decodeReview(bodies[i % bodies.length] ?? Buffer.alloc(0));
      if (request instanceof Undecodable) throw new Error(request.message);
      return request;
    });
    return () => {
      for (const request of requests) evaluate({ assembly, phase: "mutate", hooks, request, now: 0 }, host);
    };
  });
  const reviewed = measured(batches, () => () => {
    for (let i = 0; i < BATCH; i++)
      handle(bodies[i % bodies.length] ?? Buffer.alloc(0), "/mutate?timeout=10s");
  });
  return { evaluate: evaluated, review: reviewed };
}

/** `prepare` is outside the measurement. The counter of the system is coarse, so batches are added up. */
function measured(batches: number, prepare: () => () => void): number {
  let used = 0;
  for (let batch = 0; batch < WARM_BATCHES + batches; batch++) {
    const run = prepare();
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    if (batch >= WARM_BATCHES) used += user + system;
  }
  return used / batches / BATCH;
}
