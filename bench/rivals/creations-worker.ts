// A process: creates pods as fast as the API server takes them, or at a fixed rate, and reports how long each took.
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../../src/core/json.ts";
import { CREATORS, inParallel } from "../cluster/parallel.ts";
import { serveWorker } from "../cluster/worker-process.ts";
import { CONTESTS, type ContenderName, type Contest, podsPath } from "./contenders.ts";

export interface Creations {
  readonly contest: Contest["name"];
  readonly by: ContenderName;
  readonly pods: number;
  /** Absent: as fast as possible. */
  readonly perSecond?: number;
}

export interface Created {
  readonly perSecond: number;
  /** Milliseconds, one for each pod, in order of size. */
  readonly took: readonly number[];
}

serveWorker(async (cluster, { contest, by, pods, perSecond }: Creations): Promise<Created> => {
  const { pod, probe, as, outcome } = CONTESTS[contest];
  const took: number[] = [];
  const started = performance.now();
  const create = async (): Promise<void> => {
    const asked = performance.now();
    const { status, body } = await cluster.request("POST", podsPath(by), pod(), as);
    took.push(performance.now() - asked);
    // A pod that passes as it is is faster, and measures nothing, unless it should pass.
    const effect = outcome(status, body as JsonObject);
    if ((effect === undefined) !== (by === "nothing" || probe !== undefined))
      throw new Error(`${by}: a pod is ${effect ?? "not changed or refused"}: ${status}`);
  };
  if (perSecond === undefined) await inParallel(pods, CREATORS, create);
  else {
    const all: Promise<void>[] = [];
    for (let i = 0; i < pods; i++) {
      await sleep(Math.max(0, started + (i * 1_000) / perSecond - performance.now()));
      all.push(create());
    }
    await Promise.all(all);
  }
  return {
    perSecond: pods / ((performance.now() - started) / 1_000),
    took: took.sort((one, other) => one - other),
  };
});
