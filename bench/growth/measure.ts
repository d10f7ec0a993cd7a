// The processor time of one review beyond parsing its body.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ReviewHandler } from "../../src/admission/review/handle.ts";
import { assembleModules } from "../../src/cli/source/source.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { SILENT } from "../../src/core/log.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import { modules } from "../../src/modules/all.ts";
import { came } from "../../test/builders/policy.ts";
import { type Review, TENANT } from "../../test/growth/case.ts";
import { factOf, LARGE, type World } from "../../test/growth/worlds.ts";
import { staticSource } from "../fixtures/assembly.ts";
import { spreadOf } from "../report/statistics.ts";

/** Reviews one body this many times; returns the total milliseconds from the end of parsing to the response. */
export type Reviewer = (times: number) => Promise<number>;

const assemblies = new WeakMap<World, Assembly>();

/** One for all cases: thousands of nodes and policies take their time. */
function assemblyIn(world: World): Assembly {
  const known = assemblies.get(world);
  if (known !== undefined) return known;
  const made = assembleModules(modules, {}, world.configuration);
  made.apply(world.objects(LARGE).map(came));
  assemblies.set(world, made);
  return made;
}

function assemblyWith(policies: readonly JsonObject[]): Assembly {
  const made = assembleModules(modules);
  made.apply([TENANT, ...policies].map(came));
  return made;
}

export function reviewer(
  { policies, request, phase, world, pod }: Review,
  onParsed: () => void = () => {},
): Reviewer {
  const assembly = world === undefined ? assemblyWith(policies) : assemblyIn(world);
  let parsed = 0;
  const { handle } = new ReviewHandler({
    source: {
      ...staticSource(assembly),
      fetch: async (needs) => needs.map((need) => factOf(need, pod, LARGE)),
      commit: async () => "done",
    },
    log: SILENT,
    // Asked as soon as the body is parsed.
    acceptsToken: () => {
      onParsed();
      parsed = threadMilliseconds();
      return true;
    },
  });
  const body = Buffer.from(
    JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request }),
  );
  return async (times) => {
    let sum = 0;
    for (let i = 0; i < times; i++) {
      parsed = 0;
      const response = await handle(body, `/${phase}?timeout=10s`);
      const ended = threadMilliseconds();
      // A body above the limits of the server is refused when it is parsed, and costs nothing more.
      if (parsed === 0) return 0;
      if (response.status !== 200) throw new Error(response.body);
      sum += ended - parsed;
    }
    return sum;
  };
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: { readonly type: "minor" }) => void;

/** Moves parsed data out of V8's young generation: moving some megabytes takes 20 ms, and is part of parsing. */
function collectParsed(): void {
  // What survives twice is moved.
  for (let i = 0; i < 2; i++) collect({ type: "minor" });
}

/** Shorter reviews are timed together, so that each has its share of garbage collection. */
const SHORTEST_SAMPLE_MILLISECONDS = 24;

/** Milliseconds of one review beyond parsing its body, the median of some. */
export async function reviewTime(one: Review, repeats: number): Promise<number> {
  const review = reviewer(one, collectParsed);
  await review(1);
  const start = performance.now();
  await review(1);
  const times = Math.ceil(SHORTEST_SAMPLE_MILLISECONDS / Math.max(1, performance.now() - start));
  const samples: number[] = [];
  for (let i = 0; i < repeats; i++) samples.push((await review(times)) / times);
  return spreadOf(samples).median;
}

/** Of this thread alone: others compile and collect at the same time, and the machine may be busy. */
function threadMilliseconds(): number {
  // Linux updates a thread's CPU time every 4 ms, and whenever the whole process is queried.
  process.cpuUsage();
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
