// A process: the heartbeats of many kubelets, as writes into the status of one node after the other, at a steady rate.
import { setTimeout as sleep } from "node:timers/promises";
import { LARGE_CLUSTER, largeClusterNode, nodeName } from "./large-cluster.ts";
import { statusWriter, type WriteStatus } from "./status-writer.ts";
import { serveWorker } from "./worker-process.ts";

export interface Beating {
  readonly perSecond: number;
  readonly seconds: number;
  /** The number of nodes. @default those of the large cluster */
  readonly nodes?: number;
}

/**
 * The maximum number of writes in flight. An API server that falls behind gets the next request after its response:
 * sending everything that is due would only increase its work, and it would never recover.
 */
const CONNECTIONS = 16;

let writer: Promise<WriteStatus> | undefined;
let turn = 0;

/** Returns the actual writes per second. */
serveWorker(
  async (cluster, { perSecond, seconds, nodes = LARGE_CLUSTER.nodes }: Beating): Promise<number> => {
    writer ??= statusWriter(cluster, CONNECTIONS);
    const write = await writer;
    const started = performance.now();
    const passed = () => (performance.now() - started) / 1_000;
    let next = 0;
    let done = 0;
    const worker = async (): Promise<void> => {
      // By the clock and not by the tick: a late write is sent immediately, so that the rate holds.
      for (let due = next++ / perSecond; due < seconds && passed() < seconds; due = next++ / perSecond) {
        const early = due - passed();
        if (early > 0) await sleep(early * 1_000);
        // The first node is left alone: the replicas use it to show that they are up to date.
        const i = 1 + (turn++ % (nodes - 1));
        await write(nodeName(i), largeClusterNode(i));
        done += 1;
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, worker));
    return done / passed();
  },
);
