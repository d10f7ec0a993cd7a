// A process: creates pods as fast as the API server accepts them, and reports the rate.

import { CREATORS, inParallel } from "./parallel.ts";
import { type Arm, isPlaced, podFor, podsPath } from "./pod.ts";
import { serveWorker } from "./worker-process.ts";

export interface Creation {
  readonly arm: Arm;
  readonly pods: number;
}

serveWorker(async (cluster, { arm, pods }: Creation): Promise<number> => {
  const started = performance.now();
  await inParallel(pods, CREATORS, async (i) => {
    const pod = await cluster.call("POST", podsPath(arm), podFor(i));
    // A fail-open hook without an answer lets pods through, and faster than usher would: such a round measures nothing.
    const placed = arm.name !== "without";
    if (isPlaced(pod) !== placed)
      throw new Error(`a pod in ${arm.namespace} was ${placed ? "not " : ""}placed by a webhook`);
  });
  return pods / ((performance.now() - started) / 1_000);
});
