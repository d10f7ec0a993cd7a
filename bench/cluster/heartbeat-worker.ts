// A process: the heartbeats of many kubelets, as writes into the status of one node after the other, at a steady rate.
import { setTimeout as sleep } from "node:timers/promises";
import { LARGE_CLUSTER, largeClusterNode, nodeName } from "./large-cluster.ts";
import { statusWriter, type WriteStatus } from "./status-writer.ts";
import { serveWorker } from "./worker-process.ts";

export interface Beating {
  readonly perSecond: number;
  readonly seconds: number;
  /** How many nodes there are. @default those of the large cluster */
  readonly nodes?: number;
}

/**
 * So many writes are under way at most. An API server that falls behind is asked again when it has answered: one that is sent all that
 * it owes has more to do for each, and never comes out of it.
 */
const CONNECTIONS = 16;

let writer: Promise<WriteStatus> | undefined;
let turn = 0;

/** Gives what really was written a second. */
serveWorker(
  async (cluster, { perSecond, seconds, nodes = LARGE_CLUSTER.nodes }: Beating): Promise<number> => {
    writer ??= statusWriter(cluster, CONNECTIONS);
    const write = await writer;
    const started = performance.now();
    const passed = () => (performance.now() - started) / 1_000;
    let next = 0;
    let done = 0;
    const worker = async (): Promise<void> => {
      // By the clock and not by the tick: a late write is sent at once, so that the rate holds.
      for (let due = next++ / perSecond; due < seconds && passed() < seconds; due = next++ / perSecond) {
        const early = due - passed();
        if (early > 0) await sleep(early * 1_000);
        // The first node is left alone: by it the replicas know that they are up to date.
        const i = 1 + (turn++ % (nodes - 1));
        await write(nodeName(i), largeClusterNode(i));
        done += 1;
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, worker));
    return done / passed();
  },
);
