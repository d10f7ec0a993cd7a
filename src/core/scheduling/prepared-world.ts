// A world made ready for many questions.
import type { Filter } from "./filter.ts";
import { NodeTable } from "./node-table.ts";
import { filtersOf, minorOf, NEWEST_RELEASE } from "./releases.ts";
import type { SchedulingWorld } from "./world.ts";

export interface PreparedWorld {
  readonly world: SchedulingWorld;
  /** The minor version of Kubernetes 1. */
  readonly minor: number;
  readonly filters: readonly Filter[];
  readonly nodes: NodeTable;
}

/** Makes a world ready. The world and its objects must not change afterwards. */
export function prepareWorld(world: SchedulingWorld): PreparedWorld {
  const release = world.release ?? NEWEST_RELEASE;
  return {
    world,
    minor: minorOf(release),
    filters: filtersOf(release),
    nodes: new NodeTable(world.nodes),
  };
}
