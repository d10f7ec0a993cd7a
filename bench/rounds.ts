// Load in interleaved rounds: every server in every round, in alternating order, so that what disturbs the machine for a while
// disturbs them all, and none is always the one after the break.
import { keepLoadCoreAwake, pinServer } from "./cores.ts";
import type { Figures, Generator } from "./generator.ts";
import { checkAnswer } from "./probe.ts";
import { processorTime } from "./processor.ts";
import { isPatched, PODS, type Pod, reviews } from "./reviews.ts";
import type { Served, Stage } from "./stage.ts";

/**
 * The API server keeps up to 25 connections, but with two cores more than a handful only stand in line; with fewer than four the
 * server sometimes waits for the load.
 */
export const CONNECTIONS = 8;

/** As the API server calls it: the path of a webhook with all hooks, and its timeout. */
export const PATH = "/mutate?timeout=10s";

export interface Contestant {
  readonly server: Served;
  /** Undefined for the bare server. */
  readonly policies: number | undefined;
}

export interface Sample extends Figures {
  readonly round: number;
  readonly server: string;
  readonly pod: Pod;
  /** Processor time of the server for each request, in µs; undefined where the system does not tell. */
  readonly processor: number | undefined;
  /** Which part of the time the server had a core. Much below 1, somebody else had it, and the figures are theirs. */
  readonly busy: number | undefined;
}

export interface Lengths {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmSeconds: number;
}

export async function runRounds(
  stage: Stage,
  generator: Generator,
  contestants: readonly Contestant[],
  { rounds, seconds, warmSeconds }: Lengths,
): Promise<Sample[]> {
  const attack = async (
    { server, policies }: Contestant,
    pod: Pod,
    round: number,
    length: number,
  ): Promise<Sample> => {
    const bodies = reviews(pod, policies ?? 1_000);
    const url = `${server.ready.webhook}${PATH}`;
    const before = processorTime(server.pid);
    const figures = await generator.attack({
      url,
      bodies,
      ca: server.ca,
      seconds: length,
      connections: CONNECTIONS,
      scratch: stage.scratch,
    });
    const after = processorTime(server.pid);
    const processor =
      before === undefined || after === undefined ? undefined : (after - before) / 1e3 / figures.requests;
    const busy = processor === undefined ? undefined : (processor * figures.throughput) / 1e6;
    return { ...figures, round, server: server.name, pod, processor, busy };
  };

  const rest = keepLoadCoreAwake();
  stage.say(`warming up ${contestants.length} servers …`);
  for (const contestant of contestants) {
    const { server, policies } = contestant;
    pinServer(server.pid);
    for (const pod of PODS) {
      await checkAnswer(
        server,
        PATH,
        reviews(pod, policies ?? 1_000)[0] ?? "",
        policies !== undefined && isPatched(pod),
      );
      await attack(contestant, pod, 0, warmSeconds);
    }
  }
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round++) {
    stage.say(`round ${round} of ${rounds}, ${contestants.length * PODS.length} runs of ${seconds} s …`);
    const order = round % 2 === 1 ? contestants : contestants.toReversed();
    for (const pod of PODS)
      for (const contestant of order) samples.push(await attack(contestant, pod, round, seconds));
  }
  rest();
  return samples;
}
