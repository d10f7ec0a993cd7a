import type { ResourceAge, Source } from "../../core/evaluate/source.ts";
import type { Change } from "../../core/view/view.ts";
import { createResources, type ResourceResolver } from "../client/discovery.ts";
import { ListMemory } from "../client/list-memory.ts";
import { CommitBatchers, createCommits, refuseCommit } from "../commits/commit-batchers.ts";
import {
  type InformerCache,
  type InformerCacheOptions,
  openInformerCache,
  type ResourceStatus,
} from "../informers/informer-cache.ts";
import { ServerVersionPoller } from "../informers/server-version.ts";
import { createNeeds } from "./fetch-needs.ts";

/** A live cluster. */
export interface ClusterSource extends Source {
  readonly cache: InformerCache;
  readonly resources: ResourceResolver;
  /** Of all lists of this process. */
  readonly lists: ListMemory;
  /** Calls back after each change of the view, like `changed`: for controllers, which start later than the cache. */
  readonly onChange: (listener: (changes: readonly Change[]) => void) => void;
}

interface ClusterSourceOptions extends InformerCacheOptions {
  /** Writes no commits for any request: the process does not operate this cluster. @default false */
  readonly readOnly?: boolean;
}

/** Opens a cluster. It is ready when `cache.waitForSync()` resolves; until then it answers needs, and its view is incomplete. */
export function openCluster(options: ClusterSourceOptions): ClusterSource {
  const { client, assembly } = options;
  const resources = options.resources ?? createResources(client, assembly.modules);
  const listeners: ((changes: readonly Change[]) => void)[] = [];
  const changed = (changes: readonly Change[]): void => {
    options.changed?.(changes);
    for (const listener of listeners) listener(changes);
  };
  const version = new ServerVersionPoller({
    client,
    log: options.log,
    // Hooks may depend on the version, so their users must be notified.
    observed: (observed) => void (assembly.observeServerVersion(observed) && changed([])),
  });
  const lists = new ListMemory(options.log);
  const cache = openInformerCache({ ...options, resources, lists, changed, prerequisite: version.first });
  const batchers = new CommitBatchers(client, resources);
  return {
    assembly,
    cache,
    resources,
    lists,
    onChange: (listener) => void listeners.push(listener),
    get ready() {
      return cache.ready;
    },
    ages: () => agesOf(cache.status(), (options.now ?? Date.now)()),
    cuts: () => lists.cuts,
    fetch: createNeeds(client, resources, batchers, lists),
    commit: options.readOnly === true ? refuseCommit : createCommits(batchers),
    stop: () => {
      version.stop();
      return cache.stop();
    },
  };
}

/** Of served resources: others have no age. */
function agesOf(statuses: readonly ResourceStatus[], now: number): ResourceAge[] {
  return statuses.flatMap(({ resource, served, lastEventAt }) =>
    served === true && lastEventAt !== undefined ? [{ resource, ms: Math.max(0, now - lastEventAt) }] : [],
  );
}
