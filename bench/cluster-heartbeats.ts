// A process: the heartbeats of many kubelets, as writes into the status of one node after the other, at a steady rate.
import { setTimeout as sleep } from "node:timers/promises";
import { CROWD, crowdNode, nodeName } from "./cluster-crowd.ts";
import { serveHand } from "./cluster-hand.ts";
import { statusWriter, type WriteStatus } from "./cluster-status-writer.ts";

export interface Beating {
  readonly perSecond: number;
  readonly seconds: number;
}

/**
 * So many writes are under way at most. An API server that falls behind is asked again when it has answered: one that is sent all that
 * it owes has more to do for each, and never comes out of it.
 */
const HANDS = 16;

let writer: Promise<WriteStatus> | undefined;
let turn = 0;

/** Gives what really was written a second. */
serveHand(async (cluster, { perSecond, seconds }: Beating): Promise<number> => {
  writer ??= statusWriter(cluster, HANDS);
  const write = await writer;
  const started = performance.now();
  const passed = () => (performance.now() - started) / 1_000;
  let taken = 0;
  let done = 0;
  const hand = async (): Promise<void> => {
    // By the clock and not by the tick: who is late goes on at once, so that the rate is the one that was asked for.
    for (let due = taken++ / perSecond; due < seconds && passed() < seconds; due = taken++ / perSecond) {
      const early = due - passed();
      if (early > 0) await sleep(early * 1_000);
      // The first node is left alone: by it the followers know what they have taken in.
      const i = 1 + (turn++ % (CROWD.nodes - 1));
      await write(nodeName(i), crowdNode(i));
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: HANDS }, hand));
  return done / passed();
});
