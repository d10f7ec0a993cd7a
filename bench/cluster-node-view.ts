// A view that has nodes in it. No module of today reads them; this one keeps what a module that places pods would, so that
// "a heartbeat changes nothing" is tried on the real view and not merely true because nobody looks.
import { allModules } from "../src/cli/source.ts";
import { at } from "../src/core/json.ts";
import { defineModule } from "../src/core/module.ts";
import type { ClusterAccess } from "../test/cluster/access/access.ts";
import { eventually } from "../test/cluster/access/wait.ts";
import { openLive } from "../test/e2e/live-source.ts";
import { nodeName } from "./cluster-node.ts";

/** Whether usher as it is has nodes in its view. */
export const usherReadsNodes = allModules.some(({ reads }) =>
  reads.some(({ resource }) => resource === "nodes"),
);

const nodeReader = defineModule<never>({
  name: "node-reader",
  summary: "keeps of nodes what decides where a pod may go",
  kinds: [],
  reads: [
    {
      resource: "nodes",
      group: "",
      version: "v1",
      kind: "Node",
      scope: "Cluster",
      keep: [
        ["metadata", "labels"],
        ["spec", "taints"],
      ],
    },
  ],
  hooks: () => [],
  assemble: () => ({}),
});

export interface NodeView extends AsyncDisposable {
  readonly nodes: number;
  /** How many changes the view saw since it was opened, with everything taken in that was written before this call. */
  readonly changes: () => Promise<number>;
}

export async function openNodeView(cluster: ClusterAccess): Promise<NodeView> {
  const live = await openLive(cluster, [nodeReader]);
  await live.source.live.synced();
  const first = live.changes.length;
  let marks = 0;
  const changes = async (): Promise<number> => {
    // Nodes arrive in the order in which they were written: when this one label has, so has all before it.
    marks += 1;
    const mark = `mark-${marks}`;
    await cluster.call("PATCH", `/api/v1/nodes/${nodeName(0)}`, { metadata: { labels: { mark } } });
    await eventually("the marked node in the view", () => {
      const node = live.source.assembly.view.get("nodes", "", nodeName(0));
      return at(node, "metadata", "labels", "mark") === mark;
    });
    return live.changes.length - first - marks;
  };
  return {
    nodes: live.source.assembly.view.count("nodes"),
    changes,
    [Symbol.asyncDispose]: () => live[Symbol.asyncDispose](),
  };
}
