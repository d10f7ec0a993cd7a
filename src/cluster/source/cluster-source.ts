import type { Source } from "../../core/view/source.ts";
import { createResources, type ResourceResolver } from "../client/discovery.ts";
import { CommitBatchers } from "../commits/commit-batchers.ts";
import { createCommits } from "../commits/commits.ts";
import {
  type InformerCache,
  type InformerCacheOptions,
  openInformerCache,
} from "../informers/informer-cache.ts";
import { createNeeds } from "./fetch-needs.ts";

/** A live cluster. */
export interface ClusterSource extends Source {
  readonly cache: InformerCache;
  readonly resources: ResourceResolver;
}

/** Opens a cluster. It is ready when `cache.waitForSync()` is fulfilled; until then it answers needs, and its view is not whole. */
export function openCluster(options: InformerCacheOptions): ClusterSource {
  const { client, assembly } = options;
  const resources = options.resources ?? createResources(client, assembly.modules);
  const cache = openInformerCache({ ...options, resources });
  const lanes = new CommitBatchers(client, resources);
  return {
    assembly,
    cache,
    resources,
    get ready() {
      return cache.ready;
    },
    fetch: createNeeds(client, resources, lanes),
    commit: createCommits(lanes),
    stop: () => cache.stop(),
  };
}
