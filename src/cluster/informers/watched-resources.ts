import { resourceName } from "../../core/evaluate/request.ts";
import type { Module, Read } from "../../core/module/module.ts";
import { kindResource } from "../../core/policy/kind.ts";
import { project } from "../../core/view/projection.ts";
import { withoutManagedFields } from "../client/api-response.ts";
import type { Prune } from "./watch-event.ts";

/** A resource that modules together want to see. */
export interface WatchedResource {
  readonly resource: string;
  /** Nobody can do without. */
  readonly required: boolean;
  readonly leaderOnly: boolean;
  readonly labelSelector?: string;
  readonly prune: Prune;
}

/** What all modules want of the API server, each resource once. */
export function watchedResources(modules: readonly Module[]): WatchedResource[] {
  const wanted = new Map<string, WatchedResource>();
  const reads = Map.groupBy(
    modules.flatMap((module) => module.reads),
    resourceName,
  );
  for (const [resource, all] of reads) wanted.set(resource, united(resource, all));
  for (const kind of modules.flatMap(({ kinds }) => kinds)) {
    // A kind of files has no API server behind it. Of the others every part counts, whoever else reads it.
    if (kind.standing === "file") continue;
    const resource = kindResource(kind);
    wanted.set(resource, { resource, required: true, leaderOnly: false, prune: withoutManagedFields });
  }
  return [...wanted.values()];
}

function united(resource: string, reads: readonly Read[]): WatchedResource {
  const paths = reads.flatMap(({ keep }) => keep);
  const selectors = new Set(reads.map(({ labelSelector }) => labelSelector ?? ""));
  const [selector = ""] = selectors;
  return {
    resource,
    required: reads.some(({ optional }) => optional !== true),
    leaderOnly: reads.every(({ leaderOnly }) => leaderOnly === true),
    // Where they differ, all is read: each must see its part at least.
    ...(selectors.size === 1 && selector !== "" ? { labelSelector: selector } : {}),
    prune: (object) => project(object, paths),
  };
}
