// The core of each process, if a real control plane takes part: the control plane has one core, and everything that
// runs on other machines in a cluster has the other. If they shared both, usher would take CPU time from the API server
// that it never takes in a cluster.
import type { Cluster } from "../../test/cluster/cluster.ts";
import { COMPONENTS } from "../../test/cluster/components/flags.ts";
import { pinLoad, pinned, pinServer, unpin } from "../servers/cores.ts";

export interface Apart extends Disposable {
  /** Which processes share which cores. */
  readonly says: string;
}

/**
 * From here on, until it is disposed. Processes that the benchmark starts in the meantime, including replicas of usher,
 * share its core.
 */
export function keepApart(cluster: Cluster): Apart {
  if (!pinned) return { says: "all of it shares the cores", [Symbol.dispose]: () => undefined };
  for (const name of COMPONENTS) {
    const pid = cluster.has(name) ? cluster.component(name).pid : undefined;
    if (pid !== undefined) pinServer(pid);
  }
  pinLoad(process.pid);
  return {
    says: "the control plane has one core, all else the other",
    [Symbol.dispose]: () => unpin(process.pid),
  };
}
