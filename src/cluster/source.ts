import type { Source } from "../core/source.ts";
import { createCommits } from "./commits.ts";
import { Lanes } from "./lanes.ts";
import { type LiveView, type LiveViewOptions, openLive } from "./live-view.ts";
import { createNeeds } from "./needs.ts";
import { createResources, type ResourceResolver } from "./resources.ts";

/** A live cluster. */
export interface ClusterSource extends Source {
  readonly live: LiveView;
  readonly resources: ResourceResolver;
}

/** Opens a cluster. It is ready when `live.synced()` is fulfilled; until then it answers needs, and its view is not whole. */
export function openCluster(options: LiveViewOptions): ClusterSource {
  const { client, assembly } = options;
  const resources = options.resources ?? createResources(client, assembly.modules);
  const live = openLive({ ...options, resources });
  const lanes = new Lanes(client, resources);
  return {
    assembly,
    live,
    resources,
    get ready() {
      return live.ready;
    },
    fetch: createNeeds(client, resources, lanes),
    commit: createCommits(lanes),
    stop: () => live.stop(),
  };
}
