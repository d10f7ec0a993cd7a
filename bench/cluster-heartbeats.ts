// A process: the heartbeats of many kubelets, as writes into the status of one node after the other, at a steady rate.
import { setTimeout as sleep } from "node:timers/promises";
import { CROWD, heartbeat, nodeName } from "./cluster-crowd.ts";
import { serveHand } from "./cluster-hand.ts";

export interface Beating {
  readonly perSecond: number;
  readonly seconds: number;
}

const EVERY_MS = 10;
let next = 0;

/** Gives what really was written a second. */
serveHand(async (cluster, { perSecond, seconds }: Beating): Promise<number> => {
  const started = performance.now();
  const passed = () => (performance.now() - started) / 1_000;
  const open = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let sent = 0;
  const write = async (): Promise<void> => {
    const path = `/api/v1/nodes/${nodeName(next++ % CROWD.nodes)}/status`;
    await cluster.call("PATCH", path, { status: { conditions: heartbeat() } });
  };
  while (passed() < seconds) {
    // By the clock and not by the tick: a late tick sends what it missed, so that the rate is the one that was asked for.
    for (const due = passed() * perSecond; sent < due; sent++) {
      const one = write()
        .catch((error: unknown) => void failures.push(error))
        .finally(() => open.delete(one));
      open.add(one);
    }
    await sleep(EVERY_MS);
  }
  await Promise.all(open);
  if (failures.length > 0) throw failures[0];
  return sent / passed();
});
