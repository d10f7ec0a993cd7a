// usher with nodes in its view, and without. A module of usher that reads nodes is in one and not in the other; if
// there is none, a stand-in module keeps the fields that one for placement would.

import { defineModule, type Module } from "../../src/core/module/module.ts";
import { allModules } from "../../src/modules/all.ts";

/** What only a leader reads is in no view of a replica that answers reviews. */
const readsNodes = ({ reads }: Module): boolean =>
  reads.some(({ resource, leaderOnly }) => resource === "nodes" && leaderOnly !== true);

/** Whether usher as it is has nodes in its view. */
export const usherReadsNodes = allModules.some(readsNodes);

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

export function modulesThat(watchNodes: boolean): readonly Module[] {
  if (!watchNodes) return allModules.filter((module) => !readsNodes(module));
  return usherReadsNodes ? allModules : [...allModules, nodeReader];
}
