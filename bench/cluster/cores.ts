// Which core runs what, where a real control plane takes part: that has one core, and all that in a cluster runs on other machines has
// the other. Left to share both, usher would take from the API server what it never does in a cluster.
import type { Cluster } from "../../test/cluster/cluster.ts";
import { COMPONENTS } from "../../test/cluster/components/flags.ts";
import { pinLoad, pinned, pinServer, unpin } from "../servers/cores.ts";

export interface Apart extends Disposable {
  /** Which processes share which cores. */
  readonly says: string;
}

/** From here on, until it is disposed of. What the bench starts meanwhile, replicas of usher too, is where the bench is. */
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
