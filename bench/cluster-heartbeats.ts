// The heartbeats of many kubelets: writes into the status of one node after the other, at a steady rate.
import type { ClusterAccess } from "../test/cluster/access/access.ts";
import { heartbeat, nodeName } from "./cluster-node.ts";

const EVERY_MS = 10;

export interface Heartbeats {
  /** Waits for the last answers and gives what really was written a second. */
  readonly stop: () => Promise<number>;
}

export function startHeartbeats(cluster: ClusterAccess, nodes: number, perSecond: number): Heartbeats {
  const started = performance.now();
  const open = new Set<Promise<void>>();
  const failures: unknown[] = [];
  let sent = 0;
  const write = async (): Promise<void> => {
    const path = `/api/v1/nodes/${nodeName(sent++ % nodes)}/status`;
    await cluster.call("PATCH", path, { status: heartbeat() });
  };
  // By the clock and not by the tick: a late tick sends what it missed, so that the rate is the one that was asked for.
  const timer = setInterval(() => {
    const due = ((performance.now() - started) / 1_000) * perSecond;
    while (sent < due) {
      const one = write()
        .catch((error: unknown) => void failures.push(error))
        .finally(() => open.delete(one));
      open.add(one);
    }
  }, EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await Promise.all(open);
      if (failures.length > 0) throw failures[0];
      return sent / ((performance.now() - started) / 1_000);
    },
  };
}
