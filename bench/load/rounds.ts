// Load in interleaved rounds: every server in every round, in alternating order, so that temporary disturbances of the
// machine affect all of them, and none always follows the break.

import { isPatched, type Pod, reviews } from "../fixtures/reviews.ts";
import { checkResponse } from "../servers/check-response.ts";
import { keepLoadCoreAwake, pinServer } from "../servers/cores.ts";
import { processorTime } from "../servers/processor-time.ts";
import type { Served, Servers } from "../servers/servers.ts";
import type { Figures, Generator } from "./generator.ts";

/**
 * The API server keeps up to 25 connections, but with two cores more than a handful only queue; with fewer than four
 * the server sometimes waits for the load.
 */
export const CONNECTIONS = 8;

/** The bodies, and the number of connections. */
export interface Case {
  readonly pod: Pod;
  readonly connections: number;
}

/** As the API server calls it: the path of a webhook with all hooks, and its timeout. */
export const PATH = "/mutate?timeout=10s";

export interface LoadedServer {
  readonly server: Served;
  /** Undefined for the bare server. */
  readonly policies: number | undefined;
}

export interface Sample extends Figures, Case {
  readonly round: number;
  readonly server: string;
  /** CPU time of the server per request, in µs; undefined if the system does not provide it. */
  readonly processor: number | undefined;
  /** Which part of the time the server had a core. Much below 1, other work had it, and the figures are not the server's. */
  readonly busy: number | undefined;
}

export interface Lengths {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmSeconds: number;
}

export async function runRounds(
  servers: Servers,
  generator: Generator,
  loaded: readonly LoadedServer[],
  cases: readonly Case[],
  { rounds, seconds, warmSeconds }: Lengths,
): Promise<Sample[]> {
  const attack = async (
    { server, policies }: LoadedServer,
    { pod, connections }: Case,
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
      connections,
      scratch: servers.scratch,
    });
    const after = processorTime(server.pid);
    const processor =
      before === undefined || after === undefined ? undefined : (after - before) / 1e3 / figures.requests;
    const busy = processor === undefined ? undefined : (processor * figures.throughput) / 1e6;
    return { ...figures, round, server: server.name, pod, connections, processor, busy };
  };

  const rest = keepLoadCoreAwake();
  servers.say(`warming up ${loaded.length} servers …`);
  for (const one of loaded) {
    const { server, policies } = one;
    pinServer(server.pid);
    for (const what of cases) {
      const patched = policies !== undefined && isPatched(what.pod);
      await checkResponse(server, PATH, reviews(what.pod, policies ?? 1_000)[0] ?? "", patched);
      await attack(one, what, 0, warmSeconds);
    }
  }
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round++) {
    servers.say(`round ${round} of ${rounds}, ${loaded.length * cases.length} runs of ${seconds} s …`);
    const order = round % 2 === 1 ? loaded : loaded.toReversed();
    for (const what of cases) for (const one of order) samples.push(await attack(one, what, round, seconds));
  }
  rest();
  return samples;
}
